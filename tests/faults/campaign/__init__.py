"""The fault campaign: real brokers, odd sensors and clocks, an agent that is killed and cut, a list of what was sent.

The driver stands outside the agent. Its oracle knows what it published, what the brokers acknowledged to it, and what
it saw the agent acknowledge on the wire; from the agent's code it takes nothing but the reader of documents.
"""
