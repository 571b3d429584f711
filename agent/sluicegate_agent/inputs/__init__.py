"""Inputs beside MQTT by one contract (config/inputs.py): those of this package, and how the agent turns any of them."""
