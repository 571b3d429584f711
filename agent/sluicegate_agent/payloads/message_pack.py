"""Payloads in MessagePack: an object of readings, or a list of them."""

from __future__ import annotations

from typing import Any

import msgspec

from sluicegate_agent.config.formats import Payload
from sluicegate_agent.messages import Unreadable
from sluicegate_agent.payloads.documents import parts_of_list, reader_of_list, reader_of_object

_parse = msgspec.msgpack.Decoder().decode


def _message_pack(payload: bytes) -> Any:
    # The decoder holds every length against the bytes that are there before it allocates.
    try:
        return _parse(payload)
    except RecursionError:
        raise Unreadable("MessagePack is nested too deeply") from None
    except (ValueError, TypeError, OverflowError) as error:
        raise Unreadable(f"payload is not MessagePack: {error}") from None


#: What is loaded beside JSON's part of the library (0.6 MiB measured).
MEMORY = 1 << 20
OBJECT = Payload(reader_of_object(_message_pack, "MessagePack"), memory=MEMORY)
ARRAY = Payload(
    reader_of_list(_message_pack, "MessagePack"),
    parts_of_list(_message_pack, msgspec.msgpack.Encoder().encode),
    has_many=True,
    has_items=True,
    memory=MEMORY,
)
