"""An edge node of Sparkplug B as a test needs it: it counts, names its metrics by aliases, and says births again."""

from __future__ import annotations

from sluicegate_agent.messages import Message
from sluicegate_agent.payloads.sparkplug import wire

DOUBLE, INT16, INT64, TRUTH, TEXT, DATASET, TEMPLATE = 10, 2, 4, 11, 12, 16, 19


class EdgeNode:
    """Makes messages, each with the next number; times are milliseconds that go on by one a message."""

    def __init__(self, name: str = "G/E", qos: int = 0) -> None:
        self.group, self.node = name.split("/")
        self.qos, self.session, self.number, self.now, self.packet_id = qos, 0, -1, 1_700_000_000_000, 0

    def message(self, kind: str, metrics: list[wire.Metric], device: str = "", *, numbered: bool = True) -> Message:
        """Any message."""
        self.now += 1
        self.packet_id += 1
        if numbered:
            self.number = 0 if kind == "NBIRTH" else (self.number + 1) % 256
        topic = "/".join(["spBv1.0", self.group, kind, self.node, *([device] if device else [])])
        report = wire.Report(self.now, self.number if numbered else None, metrics)
        return Message(topic, wire.write(report), self.packet_id if self.qos else 0, self.qos)

    def birth(self, names: dict[str, int], values: dict[str, float] | None = None, at: int | None = None) -> Message:
        """Its own birth: aliases by name; a value each, 0 where none is given, as of `at`."""
        session = wire.Metric("bdSeq", None, None, INT64, is_null=False, value=self.session)
        return self.message("NBIRTH", [session, *self._named(names, values, at)])

    def device(self, name: str, names: dict[str, int], values: dict[str, float] | None = None) -> Message:
        """The birth of a device."""
        return self.message("DBIRTH", self._named(names, values, None), name)

    def _named(self, names: dict[str, int], values: dict[str, float] | None, at: int | None) -> list[wire.Metric]:
        return [wire.Metric(name, alias, at, DOUBLE, is_null=False, value=float((values or {}).get(name, 0)))
                for name, alias in names.items()]  # fmt: skip

    def data(self, values: dict[int | str, float], device: str = "") -> Message:
        """Data by aliases, or by names."""
        metrics = [
            wire.Metric("" if isinstance(key, int) else key, key if isinstance(key, int) else None, None, 0,
                        is_null=False, value=float(value))
            for key, value in values.items()
        ]  # fmt: skip
        return self.message("DDATA" if device else "NDATA", metrics, device)

    def death(self) -> Message:
        """The last will of the session that is."""
        session = wire.Metric("bdSeq", None, None, INT64, is_null=False, value=self.session)
        return self.message("NDEATH", [session], numbered=False)

    def again(self) -> None:
        """It connects anew."""
        self.session = (self.session + 1) % 256


def sent_again(message: Message) -> Message:
    """As the broker delivers it after a cut."""
    return message._replace(dup=True)
