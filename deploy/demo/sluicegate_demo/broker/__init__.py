"""A small MQTT broker for loopback: QoS 0 and 1, sessions that outlive connections, and faults at numbered steps."""

from sluicegate_demo.broker.faults import Fault
from sluicegate_demo.broker.server import Broker

__all__ = ["Broker", "Fault"]
