"""Payloads in CBOR (RFC 8949): an object of readings, or a list of them; keys may be numbers, as SenML has them.

Tags for times and large numbers are read; those that share values or make patterns, mails or the like are refused.
"""

from __future__ import annotations

from functools import cache
from io import BytesIO
from typing import Any

from sluicegate_agent.config.formats import Payload
from sluicegate_agent.messages import Unreadable
from sluicegate_agent.payloads.documents import parts_of_list, reader_of_list, reader_of_object

#: Containers in containers at most.
DEPTH = 64


#: References, fractions, patterns, mails, addresses and sets: none of them is a reading.
_TAGS = (4, 5, 25, 28, 29, 30, 35, 36, 37, 52, 54, 100, 256, 258, 260, 261, 1004, 43000)


def _refuse(decoder: Any) -> Any:
    raise ValueError("a tag that no reading needs")


_REFUSED = dict.fromkeys(_TAGS, _refuse)


@cache
def _library() -> Any:
    import cbor2

    return cbor2


def _cbor(payload: bytes) -> Any:
    # The decoder reads as it goes: a length beyond the bytes that are there allocates nothing.
    stream = BytesIO(payload)
    try:
        found = _library().CBORDecoder(stream, max_depth=DEPTH, semantic_decoders=_REFUSED).decode()
    except Exception as error:  # of its many tags each may have another objection
        raise Unreadable(f"payload is not CBOR: {str(error)[:200]}") from None
    if stream.tell() < len(payload):
        raise Unreadable(f"payload is not CBOR alone: {len(payload) - stream.tell()} bytes follow it")
    return found


def _encoded(item: Any) -> bytes:
    found: bytes = _library().dumps(item, value_sharing=False)
    return found


#: 1.5 MiB measured.
_NEEDED = {"module": "cbor2", "extra": "cbor", "memory": 2 << 20}
OBJECT = Payload(reader_of_object(_cbor, "CBOR"), **_NEEDED)  # type: ignore[arg-type]
ARRAY = Payload(
    reader_of_list(_cbor, "CBOR"),
    parts_of_list(_cbor, _encoded),
    has_many=True,
    has_items=True,
    **_NEEDED,  # type: ignore[arg-type]
)
