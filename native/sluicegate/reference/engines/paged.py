"""The readable twin of sluicegate.engines.paged.pages: a tree whose nodes are in pages, most of them in a store.

Level l belongs to tier l // shift. A page of tier t is 2^shift neighbouring nodes of level t·shift; only these are
stored, the inner nodes above them are combined again when a page is fetched. A page is a heap here: node h has the
children 2h and 2h + 1, the page's own nodes are the last half. In memory are, of each tier, the page of the newest
node, the one before it and the page of the oldest node.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sluicegate.errors import StoreError
from sluicegate.reference.program import Partial

FAR = 2**61  # what every slot of a leaf says that cannot be had: nothing leaves by it
Heap = list[Partial | None]


class Paged:
    """Goes before the engine whose nodes these are: the engine's own calls, and the pages they begin and leave behind.

    The engine reads and writes nodes by `_node` and `_store` only, and leaves leaves behind by `_drop_to`. What cannot
    be fetched while leaves are evicted makes it `faulted` until `heal` succeeds.
    """

    head: int
    tail: int

    def __init__(self, combine: Callable[[Partial, Partial], Partial]) -> None:
        super().__init__(combine)  # type: ignore[call-arg]  # the engine's
        self._joined = combine
        self.faulted, self.error, self.sealed, self.shift = False, StoreError("store: none"), 0, 1
        self._heaps: dict[tuple[int, int], Heap] = {}
        self._tails: dict[int, int] = {}  # by tier: the page of the newest node
        self._browsed: tuple[tuple[int, int], Heap] | None = None
        self._lost = self._recovered = False
        self.failures = 0
        self._pager: Any = None

    def carry(self, pack: Callable[[Partial | None], bytes], unpack: Callable[[bytes], Partial], width: int) -> None:
        """How partials become bytes and back."""
        self._pack, self._unpack, self._width = pack, unpack, width

    def attach(self, pager: Any, shift: int) -> None:
        """Use this pager, with pages of 2^shift partials; once, before the first leaf."""
        self._pager, self.shift = pager, shift

    # what an engine says of its shape

    def first(self, level: int) -> int:
        """Index of the level's first node."""
        return self.head >> level

    def end(self, level: int) -> int:
        """Index after the level's last node."""
        raise NotImplementedError

    def _complete(self, level: int) -> int:
        """Index after the level's last node that all its leaves are in."""
        return self.end(level)

    def _parent_made_by(self, level: int, index: int) -> int | None:
        """The node one level up that appending this one makes, or whose page begins with it."""
        raise NotImplementedError

    def _mend(self) -> None:
        """Take anew what follows from the pages."""
        raise NotImplementedError

    # insertion and eviction: those of the engine, with the pages they begin and leave behind

    def push(self, leaf: Partial) -> None:
        """Insert a leaf. Raises StoreError, and nothing has changed, where the store is behind and fails."""
        self.heal()
        sealed = [page for page in map(self._whole, self._begun()) if page is not None]
        if sealed:
            self._pager.admit(len(sealed))
        self._noting(lambda: super(Paged, self).push(leaf))  # type: ignore[misc]
        if sealed:
            self._pager.seal(sealed)
            self.sealed += len(sealed)

    def _begun(self) -> list[tuple[int, int]]:
        """(tier, page) of each page that the next leaf begins."""
        found, level, index = [], 0, self.tail
        while True:
            if level % self.shift == 0 and self._tails.get(level // self.shift) != index >> self.shift:
                found.append((level // self.shift, index >> self.shift))
            parent = self._parent_made_by(level, index)
            if parent is None:
                return found
            level, index = level + 1, parent

    def _begin(self, page: tuple[int, int]) -> None:
        """A new page, from now on the newest of its tier."""
        self._tails[page[0]] = page[1]
        self._heaps[page] = [None] * (2 << self.shift)
        self._hold(page[0])

    def _whole(self, begun: tuple[int, int]) -> tuple[int, int, bytes] | None:
        """The page before, which is whole then, unless nothing of it is inside any more."""
        tier, page = begun
        if self._tails.get(tier) != page - 1 or page << self.shift <= self.first(tier * self.shift):
            return None
        return tier * self.shift, page - 1, self._packed(self._heaps[tier, page - 1][1 << self.shift :])

    def _packed(self, nodes: Heap) -> bytes:
        """Partials as bytes; the places of those that left before they would have been made get any value."""
        there = next(node for node in nodes if node is not None)
        return b"".join(self._pack(there if node is None else node) for node in nodes)

    def pop(self) -> None:
        """Evict the oldest leaf. Where its successor's page cannot be had: faulted, and evicted."""
        if self.faulted:
            self.head, self._lost = self.head + 1, True
            return
        self._noting(super().pop)  # type: ignore[misc]

    def pop_to(self, head: int) -> None:
        """Evict the leaves before `head`."""
        if self.faulted:
            self.head, self._lost = head, True
        else:
            self._noting(lambda: super(Paged, self).pop_to(head))  # type: ignore[misc]

    def bulk(self, leaves: Callable[[Partial], bool]) -> None:
        """Evict the longest prefix that leaves; nothing, and faulted, where a page on the way cannot be had."""
        self._noting(lambda: super(Paged, self).bulk(leaves))  # type: ignore[misc]

    def _noting(self, change: Callable[[], None]) -> None:
        try:
            change()
        except StoreError as error:
            self._note(error)
            self._lost = True

    def _note(self, error: StoreError) -> None:
        self.faulted, self.error = True, error
        self.failures += 1

    def _drop_to(self, head: int) -> None:
        before, self.head = self.head, head
        for tier in sorted(self._tails):
            level = tier * self.shift
            page, half = head >> level >> self.shift, 1 << self.shift >> 1
            self._hold(tier)
            place, was = (head >> level) - (page << self.shift), (before >> level) - (page << self.shift)
            if place >= half > was and page + 1 < self._tails[tier] - 1:
                self._pager.want(level, page + 1, self._tails[tier])

    def _hold(self, tier: int) -> None:
        """Have the pages of a tier's oldest and newest nodes in memory, and no others."""
        level, tail = tier * self.shift, self._tails[tier]
        page = self.first(level) >> self.shift
        if self.first(level) < self.end(level) and (tier, page) not in self._heaps:
            self._heaps[tier, page] = self._fetch(tier, page)
        for held in [held for held in self._heaps if held[0] == tier and held[1] not in (page, tail, tail - 1)]:
            del self._heaps[held]

    def heal(self) -> None:
        """Fetch what could not be had. Raises StoreError where it still cannot."""
        if not self.faulted:
            return
        for tier in sorted(self._tails):
            self._hold(tier)
        self.faulted = False
        if self._lost:
            self._noting(self._mend)
        if self.faulted:
            raise self.error
        self._lost = False

    # answers

    def total(self) -> Partial | None:
        """The partial of the whole window, None when it is empty or faulted."""
        return None if self.faulted else self._asked(super().total)  # type: ignore[misc]

    def rest(self) -> Partial | None:
        """The partial of all leaves but the oldest, None when there are none or it is faulted."""
        return None if self.faulted else self._asked(super().rest)  # type: ignore[misc]

    def leaf(self, index: int) -> Partial:
        """A leaf of the window; one that cannot be had is FAR throughout, and the engine faulted."""
        found = None if self.faulted else self._asked(lambda: self._node(0, index))
        return [FAR] * self._width if found is None else found

    def _asked(self, ask: Callable[[], Partial | None]) -> Partial | None:
        """An answer; None, and faulted, where a page it needs cannot be had."""
        try:
            return ask()
        except StoreError as error:
            self._note(error)
            return None

    # nodes in pages

    def _place(self, level: int, index: int) -> tuple[tuple[int, int], int]:
        tier, inner = divmod(level, self.shift)
        bits = self.shift - inner
        return (tier, index >> bits), 1 << bits | (index & ((1 << bits) - 1))

    def _node(self, level: int, index: int) -> Partial:
        page, h = self._place(level, index)
        node = self._heap(page)[h]
        assert node is not None  # noqa: S101  the shape says which nodes there are
        return node

    def _heap(self, page: tuple[int, int]) -> Heap:
        """A page: in memory, the last one fetched for a look, or fetched now."""
        if page in self._heaps:
            return self._heaps[page]
        if self._browsed is None or self._browsed[0] != page:
            self._browsed = page, self._fetch(*page)
        return self._browsed[1]

    def _store(self, level: int, index: int, node: Partial) -> None:
        page, h = self._place(level, index)
        self._heap(page)[h] = node

    def _fetch(self, tier: int, page: int) -> Heap:
        data, size = self._pager.fetch(tier * self.shift, page), 8 * self._width
        nodes = [self._unpack(data[at : at + size]) for at in range(0, len(data), size)]
        heap: Heap = [None] * (1 << self.shift)
        heap.extend(nodes)
        for h in range((1 << self.shift) - 1, 1, -1):
            heap[h] = self._joined(heap[2 * h], heap[2 * h + 1])  # type: ignore[arg-type]
        return heap

    # for the manifest and from it

    def levels(self) -> list[tuple[int, bytes]]:
        """For each stored level: the index of the first node in no whole page, and those nodes' bytes."""
        found = []
        for tier in sorted(self._tails):
            begin, end = self._tails[tier] << self.shift, self.end(tier * self.shift)
            if end - begin > 1 << self.shift or end <= begin:
                found.append((max(begin, end), b""))
                continue
            nodes = self._heaps[tier, self._tails[tier]][1 << self.shift :][: end - begin]
            found.append((begin, self._packed(nodes)))
        return found

    def recover(self, head: int, tail: int, levels: list[tuple[int, bytes]]) -> None:
        """Take over what `levels` gave; the store is read by `load`."""
        self.head, self.tail, self._recovered, size = head, tail, True, 8 * self._width
        for tier, (begin, data) in enumerate(levels):
            if data:
                nodes: Heap = [self._unpack(data[at : at + size]) for at in range(0, len(data), size)]
                page = begin >> self.shift
                blank: Heap = [None] * ((2 << self.shift) - len(nodes) - (1 << self.shift))
                self._tails[tier], self._heaps[tier, page] = page, [None] * (1 << self.shift) + nodes + blank

    def _take_over(self, head: int) -> None:
        """Fetch what is needed around head and tail. Raises StoreError."""
        if not self._recovered or head != self.head:
            raise StoreError("store: a window that has one is opened from it, not loaded from leaves")
        for tier in sorted(self._tails):
            page = self._tails[tier]
            self._build_inner(tier, page)
            if self.first(tier * self.shift) < page << self.shift:
                self._heaps[tier, page - 1] = self._fetch(tier, page - 1)
            self._hold(tier)

    def _build_inner(self, tier: int, page: int) -> None:
        """The inner nodes that are there of a page that is not whole."""
        for level in range(tier * self.shift + 1, (tier + 1) * self.shift):
            bits = self.shift - level % self.shift
            for index in range(page << bits, min((page + 1) << bits, self._complete(level))):
                pair = self._node(level - 1, 2 * index), self._node(level - 1, 2 * index + 1)
                self._store(level, index, self._joined(*pair))
