"""Has this message been counted? Three answers, by what the message tells of itself; never by the DUP flag.

`Sequences`   a sequence number: a bitmap of the last `horizon` numbers of each of the last few epochs of a source.
`Contents`    a time of its own: 128 bits of BLAKE2b over topic and payload, kept for the last `horizon` messages.
`Deliveries`  neither: a sensor may honestly say the same twice, so only what the broker may deliver again counts as
              known: (packet id, payload) of the messages it may not know to be acknowledged, in their order.

Each is changed in memory as messages come, written by `save` inside the commit's transaction, and clean after `saved`.
"""

from sluicegate_agent.identity.contents import Contents
from sluicegate_agent.identity.deliveries import Deliveries
from sluicegate_agent.identity.sequences import EPOCHS_KEPT, JUMP_MOST, Sequences
from sluicegate_agent.identity.verdict import Verdict

__all__ = ["EPOCHS_KEPT", "JUMP_MOST", "Contents", "Deliveries", "Sequences", "Verdict"]
