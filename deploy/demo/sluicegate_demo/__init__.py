"""The main job on one machine: readings over MQTT, agents with faults, the merge, and a proof by another path.

The only package that sees both the agent and the cloud.
"""
