"""The contract of sync targets as tests; each target's own test module runs all of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sluicegate_agent.sync.contract import Document, Target

FIRST = Document("board-1::level::00060a24181e4000::0000000000000000", b'{"a":1}')
SECOND = Document("board-1::level::00060a24181e4000::0000000000000064", b'{"b":2}')
OTHER_STREAM = Document("board-1::flow.in::00060a24181e4000::0000000000000000", b'{"c":3}')


class Subject(ABC):
    """A target under test, and what the suite has to do to it and see of it."""

    target: Target

    @abstractmethod
    def held(self) -> dict[str, bytes]:
        """Every document the target has, by id."""

    @abstractmethod
    def go_away(self) -> None:
        """Make the target unreachable."""

    @abstractmethod
    def come_back(self) -> None:
        """Make it reachable again, with all it had."""


class TargetSuite:
    """Subclass as `TestMyTarget` and define `subject`."""

    @pytest.fixture
    def subject(self, tmp_path: Path) -> Iterator[Any]:
        """The target under test."""
        raise NotImplementedError

    def test_documents_arrive_whole(self, subject: Subject) -> None:
        """Everything given is accepted and there, byte for byte, under its id."""
        outcome = subject.target.put([FIRST, SECOND, OTHER_STREAM])
        assert set(outcome.accepted) == {FIRST.id, SECOND.id, OTHER_STREAM.id}
        assert (outcome.rejected, outcome.retry_after) == ({}, None)
        assert subject.held() == {d.id: d.data for d in (FIRST, SECOND, OTHER_STREAM)}

    def test_the_same_again_is_success(self, subject: Subject) -> None:
        """A sender that does not know whether it arrived may send again: nothing changes, nothing is rejected."""
        subject.target.put([FIRST])
        outcome = subject.target.put([FIRST, FIRST])
        assert set(outcome.accepted) == {FIRST.id}
        assert outcome.rejected == {}
        assert subject.held() == {FIRST.id: FIRST.data}

    def test_other_bytes_are_never_taken(self, subject: Subject) -> None:
        """A document is written once: another one under its id is rejected with a reason, the rest is still taken."""
        subject.target.put([FIRST])
        outcome = subject.target.put([Document(FIRST.id, b'{"a":9}'), SECOND])
        assert outcome.accepted == (SECOND.id,)
        assert "other bytes" in outcome.rejected[FIRST.id]
        assert subject.held()[FIRST.id] == FIRST.data

    @pytest.mark.parametrize("data", [FIRST.data[:-1], FIRST.data + b" ", b""])
    def test_a_beginning_is_not_the_same_bytes(self, subject: Subject, data: bytes) -> None:
        """Shorter, longer and empty documents under a known id are other bytes."""
        subject.target.put([FIRST])
        assert FIRST.id in subject.target.put([Document(FIRST.id, data)]).rejected
        assert subject.held() == {FIRST.id: FIRST.data}

    def test_away_means_later(self, subject: Subject) -> None:
        """Unreachable: no exception, nothing accepted, nothing rejected, a wish to be tried again and the reason."""
        subject.go_away()
        outcome = subject.target.put([FIRST])
        assert outcome.accepted == ()
        assert outcome.rejected == {}
        assert outcome.retry_after is not None
        assert outcome.error
        subject.come_back()
        assert subject.target.put([FIRST]).accepted == (FIRST.id,)

    def test_nothing_to_do(self, subject: Subject) -> None:
        """No documents are no failure."""
        outcome = subject.target.put([])
        assert (outcome.accepted, outcome.rejected, outcome.retry_after) == ((), {}, None)

    @pytest.mark.parametrize("id", ["", "a::b::c", "::b::c::0", "a::b::c::0::x", "../../etc::b::c::0", "a::..::c::0"])
    def test_no_id_leads_astray(self, subject: Subject, id: str) -> None:
        """An id that is none is rejected; one with odd names stays inside the target."""
        outcome = subject.target.put([Document(id, b"{}")])
        assert (id in outcome.rejected) != (subject.held() == {id: b"{}"})

    def test_closing_twice_is_harmless(self, subject: Subject) -> None:
        """Close, and close again."""
        subject.target.close()
        subject.target.close()
