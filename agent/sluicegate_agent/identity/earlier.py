"""The messages before a connection, in their order, held against those that a broker may be sending again.

The candidates for "it sends again from here" are the bits of one number (shift-and, Baeza-Yates and Gonnet 1992): each
message keeps those whose next entry it equals. A few thousand entries cost some microseconds a message.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator, Sequence

from sluicegate_agent.identity.verdict import DIGEST

_TAG = 4
_ENTRY = struct.Struct(f"<H{DIGEST}s{_TAG}s")
ENTRY = _ENTRY.size
#: So many messages of a topic without any repetition show that its contents are never said twice by chance.
DISTINCT = 256
#: Half of the packet ids there are.
HALF = 32768


def entry_of(packet_id: int, digest: bytes, topic: bytes) -> bytes:
    """A message as it is kept: packet id, digest of topic and payload, the first bytes of the topic's own digest."""
    return _ENTRY.pack(packet_id, digest, topic)


class Run:
    """Where in the log what comes may be a repeat: the places whose entries so far were those that came."""

    def __init__(self, entries: int) -> None:
        self._whole = self._next = (1 << entries) - 1

    def follow(self, places: int) -> bool:
        """Go on with a message that equals the entries at `places` (bits); whether any candidate is left."""
        found = self._next & places
        self._next = (found << 1) & self._whole
        return found != 0

    def end(self) -> None:
        """Nothing more of it comes."""
        self._next = 0


class Earlier:
    """The log as of the beginning of a connection; the last `unconfirmed` of its entries may be unknown to the broker.

    `whole`: it reaches back to the session's first message.
    """

    def __init__(self, entries: Sequence[bytes], unconfirmed: int, *, whole: bool) -> None:
        self._entries = entries
        self._joined = b"".join(entries)
        self._first_unconfirmed = len(entries) - unconfirmed
        self._ids: dict[int, int] | None = None
        self._whole = whole
        self.repeated, self.restored = Run(len(entries)), Run(len(entries))
        self._distinct: dict[bytes, list[int]] = {}
        self._due: Counter[bytes] | None = None

    def places(self, entry: bytes, *, by_id: bool) -> int:
        """The entries of the same content (and packet id), a bit each."""
        found = bytearray(len(self._entries) // 8 + 1)
        for place in self._find(entry[:-_TAG] if by_id else entry[2:-_TAG], 0 if by_id else 2):
            found[place >> 3] |= 1 << (place & 7)
        return int.from_bytes(found, "little")

    def _find(self, part: bytes, offset: int) -> Iterator[int]:
        at = self._joined.find(part)
        while at >= 0:
            if (at - offset) % ENTRY == 0:
                yield at // ENTRY
            at = self._joined.find(part, at + 1)

    def last_of(self, packet_id: int) -> int | None:
        """The place of the newest entry with a packet id."""
        if self._ids is None:
            self._ids = {int.from_bytes(entry[:2], "little"): place for place, entry in enumerate(self._entries)}
        return self._ids.get(packet_id)

    def has(self, entry: bytes) -> bool:
        """Whether the newest entry of its packet id, less than half of all ids ago, has its content as well."""
        place = self.last_of(int.from_bytes(entry[:2], "little"))
        return place is not None and len(self._entries) - place < HALF and self.same(place, entry)

    def same(self, place: int, entry: bytes) -> bool:
        """Whether an entry has this content."""
        return self._entries[place][2:-_TAG] == entry[2:-_TAG]

    def may_be_unacknowledged(self, place: int) -> bool:
        """Whether the broker is not known to know that this entry was acknowledged."""
        return place >= self._first_unconfirmed

    def takes_unconfirmed(self, entry: bytes) -> bool:
        """Whether an entry that may be unacknowledged has this content; each is taken for one message."""
        if self._due is None:
            self._due = Counter(kept[2:] for kept in self._entries[self._first_unconfirmed :])
        self._due[entry[2:]] -= 1
        return self._due[entry[2:]] >= 0

    def holds(self, entry: bytes) -> bool:
        """Whether any entry has this content."""
        return any(True for _ in self._find(entry[2:-_TAG], 2))

    def reaches(self, packet_id: int) -> bool:
        """Whether a message of this packet id would stand in it, where ids count upward."""
        if self._whole or not self._entries:
            return self._whole
        return (packet_id - int.from_bytes(self._entries[0][:2], "little")) % 65535 < HALF

    def is_unmistakable(self, entry: bytes) -> bool:
        """Whether this content stands in it once, of a topic that has long said nothing twice: equal by no chance."""
        places = list(self._find(entry[2:-_TAG], 2))
        if len(places) != 1:
            return False
        of_topic = self._distinct_of(entry[-_TAG:])
        return sum(place < places[0] for place in of_topic) >= DISTINCT

    def _distinct_of(self, topic: bytes) -> list[int]:
        """The places of a topic's entries; none where two of them are alike."""
        if topic not in self._distinct:
            places = list(self._find(topic, ENTRY - _TAG))
            alike = len({self._entries[place][2:-_TAG] for place in places}) < len(places)
            self._distinct[topic] = [] if alike else places
        return self._distinct[topic]
