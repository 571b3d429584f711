"""Sparkplug B: births name what data says by number, sequence numbers say what is missing, deaths end both."""
