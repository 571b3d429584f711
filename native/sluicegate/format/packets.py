"""Messages of MQTT out of a buffer."""

from sluicegate.format._packets import publish_of, publishes

__all__ = ["publish_of", "publishes"]
