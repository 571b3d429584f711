"""Has this message been counted? Three answers, by what the message tells of itself.

`Sequences`   a sequence number: the last `horizon` numbers of each of the last few epochs of a source.
`Contents`    a time of its own: 128 bits of BLAKE2b over topic and payload, kept for the last `horizon` messages.
`Bare`        neither: a sensor may honestly say the same twice, so only what the broker may deliver again counts as
              known, in the order of its deliveries; retained messages are known by their content.

Each is changed in memory as messages come, written by `save` inside the commit's transaction, and clean after `saved`.
"""

from sluicegate_agent.identity.allowance import Allowance
from sluicegate_agent.identity.bare import Bare
from sluicegate_agent.identity.contents import Contents
from sluicegate_agent.identity.deliveries import Deliveries, kept
from sluicegate_agent.identity.sequences import EPOCHS_KEPT, JUMP_MOST, Sequences
from sluicegate_agent.identity.verdict import Found, Verdict, content_of

__all__ = [
    "EPOCHS_KEPT",
    "JUMP_MOST",
    "Allowance",
    "Bare",
    "Contents",
    "Deliveries",
    "Found",
    "Sequences",
    "Verdict",
    "content_of",
    "kept",
]
