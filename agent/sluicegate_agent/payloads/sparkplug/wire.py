"""The bytes of Sparkplug B: a payload with its metrics, by the field numbers of Eclipse Tahu's `sparkplug_b.proto`.

Only what readings need is described: datasets, templates and properties are passed over unread by the library.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from sluicegate_agent.messages import Unreadable

#: Data types by their numbers: widths of signed ones, and the names of those that are no numbers.
SIGNED = {1: 8, 2: 16, 3: 32, 4: 64}
NO_NUMBER = {
    11: "true or false", 12: "a text", 13: "a date", 14: "a text", 15: "a UUID", 16: "a dataset", 17: "bytes",
    18: "a file", 19: "a template", 20: "a property set", 21: "a list of property sets",
} | dict.fromkeys(range(22, 35), "an array")  # fmt: skip
BOOLEAN = 11
_OF_VALUES = {"string_value": 12, "bytes_value": 17, "dataset_value": 16, "template_value": 19, "boolean_value": 11}


class Metric(NamedTuple):
    """One metric: a name, an alias or both; `value` is None where it is null, or no number that `kind` tells."""

    name: str
    alias: int | None
    time_ms: int | None
    kind: int
    is_null: bool
    value: int | float | None


class Report(NamedTuple):
    """One payload."""

    time_ms: int | None
    sequence: int | None
    metrics: list[Metric]


@cache
def _payload() -> Any:
    """The message's class; the library is imported with the first message."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(name="sparkplug_b.proto", package="sparkplug", syntax="proto2")
    kinds = descriptor_pb2.FieldDescriptorProto
    payload = file.message_type.add(name="Payload")
    metric = payload.nested_type.add(name="Metric")
    group = metric.nested_type.add(name="Group")  # a dataset, a template: what is in them is not looked at
    assert not group.field  # noqa: S101  for the reader: an empty message keeps them as they are
    for name, number, kind in (("timestamp", 1, kinds.TYPE_UINT64), ("seq", 3, kinds.TYPE_UINT64)):
        payload.field.add(name=name, number=number, type=kind, label=kinds.LABEL_OPTIONAL)
    payload.field.add(
        name="metrics", number=2, type=kinds.TYPE_MESSAGE, label=kinds.LABEL_REPEATED,
        type_name=".sparkplug.Payload.Metric",
    )  # fmt: skip
    plain = (
        *(("name", 1, kinds.TYPE_STRING), ("alias", 2, kinds.TYPE_UINT64), ("timestamp", 3, kinds.TYPE_UINT64)),
        *(("datatype", 4, kinds.TYPE_UINT32), ("is_null", 7, kinds.TYPE_BOOL)),
    )
    for name, number, kind in plain:
        metric.field.add(name=name, number=number, type=kind, label=kinds.LABEL_OPTIONAL)
    metric.oneof_decl.add(name="value")
    values = (
        *(("int_value", 10, kinds.TYPE_UINT32), ("long_value", 11, kinds.TYPE_UINT64)),
        *(("float_value", 12, kinds.TYPE_FLOAT), ("double_value", 13, kinds.TYPE_DOUBLE)),
        *(("boolean_value", 14, kinds.TYPE_BOOL), ("string_value", 15, kinds.TYPE_STRING)),
        *(("bytes_value", 16, kinds.TYPE_BYTES), ("dataset_value", 17, kinds.TYPE_MESSAGE)),
        ("template_value", 18, kinds.TYPE_MESSAGE),
    )
    for name, number, kind in values:
        nested = ".sparkplug.Payload.Metric.Group" if kind == kinds.TYPE_MESSAGE else None
        metric.field.add(
            name=name, number=number, type=kind, label=kinds.LABEL_OPTIONAL, oneof_index=0, type_name=nested
        )
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("sparkplug.Payload"))


def read(payload: bytes, most: int) -> Report:
    """A payload with `most` metrics or fewer. Raises Unreadable."""
    try:
        found = _payload().FromString(payload)
        count = len(found.metrics)
        metrics = [_metric(each) for each in found.metrics] if count <= most else []
        time = found.timestamp if found.HasField("timestamp") else None
        report = Report(time, found.seq if found.HasField("seq") else None, metrics)
    except Exception as error:  # the library's errors, and texts that are none
        raise Unreadable(f"payload is not Sparkplug B: {type(error).__name__}") from None
    if count > most:
        raise Unreadable(f"{count} metrics of a message are more than limits.readings ({most}) allows")
    return report


def _metric(each: Any) -> Metric:
    field = each.WhichOneof("value") or ""
    kind = each.datatype or _OF_VALUES.get(field, 0)
    value = getattr(each, field) if field in ("int_value", "long_value", "float_value", "double_value") else None
    time = each.timestamp if each.HasField("timestamp") else None
    is_null = each.is_null or not field
    return Metric(each.name, each.alias if each.HasField("alias") else None, time, kind, is_null, value)


def signed(value: int | float, kind: int) -> int | float:
    """A whole number of a signed type, which is written as two's complement."""
    width = SIGNED.get(kind)
    if width is None or isinstance(value, float):
        return value
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value


def write(report: Report) -> bytes:
    """A payload's bytes: of the command that asks for a birth, and what tests send."""
    made = _payload()()
    if report.time_ms is not None:
        made.timestamp = report.time_ms
    if report.sequence is not None:
        made.seq = report.sequence
    for each in report.metrics:
        metric = made.metrics.add()
        if each.name:
            metric.name = each.name
        for field, value in (("alias", each.alias), ("timestamp", each.time_ms), ("datatype", each.kind or None)):
            if value is not None:
                setattr(metric, field, value)
        _write_value(metric, each)
    written: bytes = made.SerializeToString()
    return written


def _write_value(metric: Any, each: Metric) -> None:
    if each.is_null:
        metric.is_null = True
    elif each.kind == BOOLEAN:
        metric.boolean_value = bool(each.value)
    elif isinstance(each.value, float):
        metric.double_value = each.value
    elif each.value is None:
        metric.dataset_value.SetInParent()
    elif each.kind in (4, 8):
        metric.long_value = each.value % (1 << 64)
    else:
        metric.int_value = each.value % (1 << 32)
