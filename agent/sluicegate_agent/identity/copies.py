"""Messages that a broker may send twice: a subscription of a former configuration is not undone, and matches as well.

Mosquitto with MQTT 5, for one, sends what two subscriptions of a session match once for each, and nothing in a copy
says so. What says the same again on such a topic is in doubt, until the broker has undone the former subscription and
has sent what it held.
"""

from __future__ import annotations

from sluicegate_agent.messages import Message
from sluicegate_agent.naming.topics import Filter

#: What was said meanwhile, of the newest messages.
_MOST = 2048


class Copies:
    """The former subscriptions that still stand, and what came of their topics meanwhile."""

    def __init__(self) -> None:
        self._former: tuple[str, ...] = ()
        self._filters: list[Filter] = []
        self._said: dict[bytes, None] = {}

    def expect(self, former: tuple[str, ...]) -> None:
        """These subscriptions stand beside ours from now on; none: that is over."""
        if former != self._former:
            self._former, self._filters = former, [Filter(each) for each in former]
            self._said.clear()

    def may_be(self, message: Message) -> bool:
        """Whether a message may be the second one of its kind."""
        return any(each.match(message.topic) is not None for each in self._filters)

    def was_said(self, digest: bytes) -> bool:
        """Whether this came before while copies may come; it is known from now on."""
        if digest in self._said:
            return True
        self._said[digest] = None
        if len(self._said) > _MOST:
            del self._said[next(iter(self._said))]
        return False
