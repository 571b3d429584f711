"""A store that is slow or hangs: what waits for it is bounded, and nothing is read twice."""

from __future__ import annotations

import threading
import time
from typing import Any, ClassVar

from test_store_faults import SUMS, plain_of, shape, values

import sluicegate as sg
from sluicegate.stores import Key, Memory, Plan


class _Held(Memory):
    """Writes only while it is let, and slowly if told so."""

    def __init__(self, plan: Plan, seconds: float = 0.0) -> None:
        super().__init__(plan)
        self.seconds = seconds
        self.go = threading.Event()
        self.go.set()

    def put(self, rows: Any) -> None:
        self.go.wait()
        time.sleep(self.seconds)
        super().put(rows)


def test_a_slow_store_holds_back() -> None:
    """The window waits for a slow store rather than keep more than 512 pages; answers are the same."""
    store, policy, readings = _Held(Plan(1, 64), 0.002), sg.policies.count(300), values(2_000)
    window = sg.Window(SUMS, policy=policy, store=store)
    store.go.clear()
    most = 0
    for value in readings:
        window.insert(value)
        most = max(most, len(window._core._pager._pages))
        if most >= 64:  # on a machine as slow as the store no more would ever wait
            store.go.set()
    assert 64 <= most <= 512
    assert window.query() == plain_of(readings, policy).query()
    window.close()


def test_one_insertion_does_not_wait_for_a_commit() -> None:
    """From 256 pages on a page waits a moment for room and then goes in, up to 512: a bulk eviction is not held up."""
    store, policy, readings = _Held(Plan(1, 10**6)), sg.policies.count(300), values(1_500)
    window = sg.Window(SUMS, policy=policy, store=store)
    store.go.clear()
    rescue = threading.Timer(300, store.go.set)
    rescue.start()
    for value in readings[:400]:
        window.insert(value)
    assert not store.go.is_set(), "an insertion waited for the store, until the test let it go"
    assert 300 < len(window._core._pager._pages) <= 512
    rescue.cancel()
    store.go.set()
    window.insert_many(readings[400:], results=False)
    assert window.query() == plain_of(readings, policy).query()
    window.close()


def test_what_waits_is_bounded_while_the_store_hangs() -> None:
    """At 512 pages an insertion stops until there is room, however long that takes."""
    store, policy, readings = _Held(Plan(1, 10**6)), sg.policies.count(300), values(2_000)
    window = sg.Window(SUMS, policy=policy, store=store)
    store.go.clear()
    inserting = threading.Thread(target=window.insert_many, args=(readings,), kwargs={"results": False})
    inserting.start()
    pages = window._core._pager._pages
    for _ in range(12_000):
        inserting.join(0.01)
        if len(pages) >= 505:  # a reading may begin several pages
            break
    inserting.join(0.1)
    waits, most = inserting.is_alive(), len(pages)
    store.go.set()
    assert waits
    assert 505 <= most <= 512
    inserting.join(120)
    assert window.query() == plain_of(readings, policy).query()
    window.close()


def test_what_the_thread_has_not_come_to_read_is_read_once() -> None:
    """While a write holds the thread up, a caller reads the pages it needs, many in one call, none a second time."""

    class HeldUp(_Held):
        reads: ClassVar[list[list[Key]]] = []

        def get(self, keys: Any) -> list[bytes | None]:
            self.reads.append(list(keys))
            return super().get(keys)

    store, policy, readings = HeldUp(Plan(2, 10**6)), sg.policies.count(600), values(2_000)
    window = sg.Window(SUMS, policy=policy, store=store)
    window.insert_many(readings[:600], results=False)
    window.flush()
    store.go.clear()
    begin = len(store.reads)
    window.insert_many(readings[600:760], results=False)  # 53 pages wait, and as many have left at the head
    read = [key for keys in store.reads[begin:] for key in keys]
    assert max(map(len, store.reads[begin:])) > 1
    assert len(read) == len(set(read)) > 40
    assert window.query() == plain_of(readings[:760], policy).query()
    store.go.set()
    window.insert_many(readings[760:], results=False)
    assert shape(window) == shape(plain_of(readings, policy))
    window.close()
