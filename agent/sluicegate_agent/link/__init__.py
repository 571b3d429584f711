"""The agent's side of one MQTT broker."""

from sluicegate_agent.link.client import RECEIVE, Client, parse_publish
from sluicegate_agent.link.link import HELD, Link

__all__ = ["HELD", "RECEIVE", "Client", "Link", "parse_publish"]
