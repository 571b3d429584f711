"""All inputs beside MQTT of one agent: what has come is taken in turns, as much as a commit may bring."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from sluicegate_agent.config.sources import may_feed
from sluicegate_agent.messages import Message

if TYPE_CHECKING:
    from sluicegate_agent.config import Config, SourceConfig
    from sluicegate_agent.inputs.posts import Posts
    from sluicegate_agent.inputs.standing import StandardInput
    from sluicegate_agent.inputs.tail import Tail
    from sluicegate_agent.pipeline import Pipeline
    from sluicegate_agent.streams import Stream


class Waiter(Protocol):
    """What the agent waits with: the link."""

    def wake_for(self, sock: Any) -> None:
        """Let it end a wait."""

    def sleep_through(self, sock: Any) -> None:
        """Let it end none any more."""


class Inputs:
    """Files, standard input and the listener for POST, as they are configured."""

    def __init__(self, config: Config, pipeline: Pipeline, link: Waiter) -> None:
        """Raises EnvironmentRefused where the listener's address or token cannot be used."""
        self._config, self._pipeline, self._link = config, pipeline, link
        self._numbered = {source.topic: source.sequence is not None for source in config.sources}
        most, connection = int(config.limits.payload), pipeline.state.store.connection
        self._tails: list[Tail] = []
        self._standing: StandardInput | None = None
        self._posts: Posts | None = None
        for source in config.sources:
            if source.input == "tail":
                from sluicegate_agent.inputs.tail import Tail

                with pipeline.state.transaction():  # which file it is, before any line of it
                    tell_lost, was_read = partial(self._lost, source), self._was_read(source)
                    tail = Tail(connection, source, most, tell_lost, may_be_lost=was_read)
                    tail.save(connection)
                    for stream in self._fed_by(source):
                        if stream.owed:
                            stream.keep(connection)
                self._tails.append(tail)
                pipeline.entry.kept.append(tail)
            elif source.input == "stdin":
                from sluicegate_agent.inputs.standing import StandardInput

                self._standing = StandardInput.of(source, most, sys.stdin)
                link.wake_for(sys.stdin)
        if config.http.listen is not None:
            from sluicegate_agent.inputs.posts import Posts

            self._posts = Posts(config, pipeline)
            link.wake_for(self._posts.wake)

    def _was_read(self, source: SourceConfig) -> bool:
        """Whether a source had readings before a damage of the store."""
        return self._pipeline.identities.unsure.is_set and any(each.accepted for each in self._fed_by(source))

    def _fed_by(self, source: SourceConfig) -> Iterator[Stream]:
        streams = self._pipeline.state.streams.values()
        return (each for each in streams if each.name in source.streams or may_feed(source, each.name))

    def _lost(self, source: SourceConfig) -> None:
        """Lines of a file may be lost: one at least is missing in each stream, where no number will say how many."""
        self._pipeline.note("tail.lost")
        if source.sequence is None:
            for stream in self._fed_by(source):
                stream.owe(1)

    def step(self) -> bool:
        """Take what has come, as far as there is room; whether there was anything."""
        room = max(0, self._config.commit_messages - self._pipeline.pending)
        taken = self._posts.step(room) if self._posts else 0
        for lines in (*self._tails, self._standing):
            # One at a time: a line that was handed out has to be taken.
            while lines and taken < room and self._pipeline.has_room:
                message = next(lines.step(1), None)
                if message is None:
                    break
                self._take(message)
                taken += 1
        if self._standing and self._standing.is_over:
            self._link.sleep_through(self._standing.stream)
        return taken > 0

    def _take(self, message: Message) -> None:
        """A line counts because it was read once; its number says what is missing, and whether it was sent before."""
        self._pipeline.accept(message, is_new=not self._numbered[message.topic])

    @property
    def is_busy(self) -> bool:
        """Whether there is more to take at once."""
        each = (*self._tails, self._standing, self._posts)
        return any(one.is_busy for one in each if one is not None)

    @property
    def is_over(self) -> bool:
        """Whether nothing more can come: standard input was all, and has ended."""
        only = self._standing is not None and not self._tails and not self._posts and not self._config.uses_broker
        return only and self._standing is not None and self._standing.is_over and not self._standing.is_busy

    @property
    def wants_commit(self) -> bool:
        """Whether somebody waits for a commit."""
        return self._posts is not None and self._posts.wants_commit

    def committed(self) -> None:
        """What was taken is durable."""
        if self._posts:
            self._posts.committed()

    def failed(self, why: str) -> None:
        """The commit failed."""
        if self._posts:
            self._posts.failed(why)

    def close(self) -> None:
        """Let files and listener go."""
        for tail in self._tails:
            tail.close()
        if self._posts:
            self._posts.close()
