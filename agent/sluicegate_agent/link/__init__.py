"""The agent's side of one MQTT broker."""

from sluicegate_agent.lean import import_paho

import_paho()  # before the modules below, which name it

from sluicegate_agent.link.client import HELD, RECEIVE, Client, parse_publish  # noqa: E402
from sluicegate_agent.link.link import Link  # noqa: E402

__all__ = ["HELD", "RECEIVE", "Client", "Link", "parse_publish"]
