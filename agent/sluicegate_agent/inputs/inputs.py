"""All inputs beside MQTT of one agent: what has come is taken in turns, as much as a commit may bring."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluicegate_agent.config.inputs import MQTT
from sluicegate_agent.inputs.running import Running, Waiter

if TYPE_CHECKING:
    from sluicegate_agent.config import Config
    from sluicegate_agent.inputs.posts import Posts
    from sluicegate_agent.pipeline import Pipeline


class Inputs:
    """Those of the sources, and the listener for POST, as they are configured."""

    def __init__(self, config: Config, pipeline: Pipeline, link: Waiter) -> None:
        """Raises EnvironmentRefused where an input does, or where the listener's address or token cannot be used."""
        self._config, self._pipeline, self._link = config, pipeline, link
        self._running: list[Running] = []
        self._posts: Posts | None = None
        for source in config.sources:
            if source.input not in (MQTT, "http"):
                self._running.append(Running(source, int(config.limits.payload), pipeline, link))
        pipeline.entry.kept += self._running
        if config.http.listen is not None:
            from sluicegate_agent.inputs.posts import Posts

            self._posts = Posts(config, pipeline)
            link.wake_for(self._posts.wake)

    def step(self) -> bool:
        """Take what has come, as far as there is room; whether there was anything."""
        room = max(0, self._config.commit_messages - self._pipeline.pending)
        taken = self._posts.step(room) if self._posts else 0
        for each in self._running:
            taken += each.step(room - taken)
        self._running.append(self._running.pop(0)) if self._running else None
        return taken > 0

    @property
    def is_busy(self) -> bool:
        """Whether there is more to take at once."""
        return any(each.is_busy for each in self._running) or bool(self._posts and self._posts.is_busy)

    @property
    def is_over(self) -> bool:
        """Whether nothing more can come: all that there is, such as standard input, has ended."""
        is_all = bool(self._running) and not self._posts and not self._config.uses_broker
        return is_all and all(each.is_over for each in self._running)

    @property
    def wants_commit(self) -> bool:
        """Whether somebody waits for a commit."""
        return self._posts is not None and self._posts.wants_commit

    def committed(self) -> None:
        """What was taken is durable."""
        for each in self._running:
            each.committed()
        if self._posts:
            self._posts.committed()

    def failed(self, why: str) -> None:
        """The commit failed."""
        if self._posts:
            self._posts.failed(why)

    def close(self) -> None:
        """Let them all go."""
        for each in self._running:
            each.close()
        if self._posts:
            self._posts.close()
