"""What is known of a message, and the digest it is known by."""

from __future__ import annotations

from enum import Enum
from hashlib import blake2b

from sluicegate_agent.messages import Message

DIGEST = 16


class Verdict(Enum):
    """What is known of a message; all but NEW and UNDECIDABLE are refused, each with its own counter."""

    NEW = "new"
    UNDECIDABLE = "undecidable"
    DUPLICATE = "duplicate"
    BEYOND_HORIZON = "beyond_horizon"
    SEQUENCE_JUMP = "sequence_jump"


def digest_of(message: Message) -> bytes:
    """128 bits over topic and payload; the lengths are unambiguous because no topic contains a zero byte."""
    return blake2b(message.topic.encode() + b"\0" + message.payload, digest_size=DIGEST).digest()
