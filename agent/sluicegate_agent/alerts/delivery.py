"""Messages of alerts on their way: to the broker with QoS 1, to the webhook with back-off; each until it is taken."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from sluicegate_agent import faults
from sluicegate_agent.alerts.alerts import Alerts
from sluicegate_agent.lean import import_http
from sluicegate_agent.logs.repeats import Repeats

if TYPE_CHECKING:
    from sluicegate_agent.alerts.webhook import Webhook
    from sluicegate_agent.config import Config

log = logging.getLogger("sluicegate.alerts")
#: Messages that the broker has not acknowledged, at most: so many stay in paho's memory.
_IN_FLIGHT = 8
_FIRST_DELAY, _LONGEST_DELAY = 1.0, 300.0
#: Tries of a message that the webhook calls wrong; then it is given up, for what waits behind it.
_HOPELESS_TRIES = 3
_encode = msgspec.json.Encoder().encode


class Sender(Protocol):
    """Whatever sends with QoS 1: the MQTT link."""

    def send(self, topic: str, payload: bytes, *, retain: bool) -> Any:
        """Something whose `is_published()` says when it was taken; None when it has to wait."""


class Delivery:
    """Hands on what waits in `alerts`; `step` in each turn."""

    def __init__(self, config: Config, alerts: Alerts, sender: Sender) -> None:
        """Raises EnvironmentRefused for a webhook's token or certificates that cannot be used."""
        self._config, self._alerts, self._sender = config.alerts, alerts, sender
        self._device = config.device.id
        self._flying: dict[int, Any] = {}
        self._webhook = _webhook_of(config)
        self._posting = self._tries = self._failures = 0
        self._next_post = 0.0
        self._repeats = Repeats(log)

    def step(self, now: float) -> None:
        """Send what waits, and note what was taken; `now` in monotonic seconds."""
        if self._alerts.waiting or self._flying:
            self._publish()
        if self._webhook is not None:
            self._post(self._webhook, now)

    def _publish(self) -> None:
        for number, info in [*self._flying.items()]:
            if info.is_published():
                del self._flying[number]
                self._alerts.taken(number, mqtt=True)
        for number, waiting in [*self._alerts.waiting.items()]:
            if len(self._flying) >= _IN_FLIGHT:
                return
            if not waiting.mqtt or number in self._flying:
                continue
            told = waiting.told
            topic = self._config.topic.replace("{device}", self._device)
            topic = topic.replace("{alert}", told.alert).replace("{stream}", told.stream)
            info = self._sender.send(topic, _encode(told), retain=self._config.retain)
            if info is None:
                return  # the others wait, too: their order is kept
            self._flying[number] = info
            faults.step("alert: published, not acknowledged")

    def _post(self, webhook: Webhook, now: float) -> None:
        if webhook.is_busy:
            self._judge(webhook, now)
        if webhook.is_busy or now < self._next_post:
            return
        waiting = next((each for each in self._alerts.waiting.values() if each.webhook), None)
        if waiting is not None:
            self._tries = self._tries + 1 if self._posting == waiting.told.number else 1
            self._posting = waiting.told.number
            webhook.post(_encode(waiting.told), waiting.told.id)

    def _judge(self, webhook: Webhook, now: float) -> None:
        outcome = webhook.outcome()
        if outcome is None:
            return
        given_up = outcome.hopeless and self._tries >= _HOPELESS_TRIES
        if outcome.taken or given_up:
            self._failures = 0
            self._alerts.taken(self._posting, webhook=True)
        if not outcome.taken:
            delay = min(_LONGEST_DELAY, _FIRST_DELAY * 2 ** min(self._failures, 16))
            self._next_post = now + max(delay, outcome.retry_after)
            self._failures += not given_up
            self._alerts.state.counters.add("alerts.given_up" if given_up else "alerts.retries")
            self._repeats.tell(logging.WARNING, f"the webhook did not take an alert: {outcome.error}")


class Alerting:
    """Alerts and their delivery, as the agent has them."""

    def __init__(self, config: Config, alerts: Alerts, sender: Sender) -> None:
        """Raises EnvironmentRefused as Delivery does."""
        self.alerts, self._delivery = alerts, Delivery(config, alerts, sender)

    def step(self, now: float) -> None:
        """Look for silence, and send what waits."""
        self.alerts.step(now)
        self._delivery.step(now)


def _webhook_of(config: Config) -> Webhook | None:
    if config.alerts.webhook is None:
        return None
    import_http()
    from sluicegate_agent.alerts.webhook import Webhook

    return Webhook(config.alerts)
