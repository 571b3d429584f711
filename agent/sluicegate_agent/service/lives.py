"""Lets agents live one after another: until a signal, other configuration, or a state that parts."""

from __future__ import annotations

import contextlib
import logging
import signal
import socket
from pathlib import Path
from types import FrameType, TracebackType
from typing import Self

from sluicegate.memory.chunks import give_back_heap
from sluicegate_agent.agent import Agent
from sluicegate_agent.config import Config
from sluicegate_agent.errors import EnvironmentRefused
from sluicegate_agent.passwords import exposed_files
from sluicegate_agent.reloading import Reloading
from sluicegate_agent.service.notify import Supervisor
from sluicegate_agent.state import State

log = logging.getLogger("sluicegate.agent")


class Signals:
    """While open, SIGTERM and SIGINT set `received`, SIGHUP `hung_up`, and each makes the socket `wake` readable."""

    def __init__(self, *, reloads: bool = False) -> None:
        """`reloads`: SIGHUP does not end the process."""
        self.received = self.hung_up = False
        self._numbers = (signal.SIGTERM, signal.SIGINT, *((signal.SIGHUP,) if reloads else ()))
        self.wake, self._woken = socket.socketpair()

    def __enter__(self) -> Self:
        self.wake.setblocking(False)
        self._woken.setblocking(False)
        self._before_fd = signal.set_wakeup_fd(self._woken.fileno(), warn_on_full_buffer=False)
        self._before = {number: signal.signal(number, self._handle) for number in self._numbers}
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._before_fd)
        self.wake.close()
        self._woken.close()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGHUP:
            self.hung_up = True
        else:
            self.received = True

    def heed(self) -> bool:
        """Whether SIGHUP came since the last call."""
        was, self.hung_up = self.hung_up, False
        if was:
            with contextlib.suppress(OSError):
                self.wake.recv(4096)
        return was


def run(
    config: Config, *, drain: bool = False, idle: float | None = None, planned: int = 0, file: Path | None = None
) -> None:
    """Open the state, turn until a signal (or no message for `idle` seconds), leave everything durable, close.

    At SIGHUP `file` is read again. Raises what State raises, and EnvironmentRefused for a missing secret, or a target
    that does not take what `drain` hands over.
    """
    now, before, has_parted = config, None, False
    reloading, supervisor = Reloading(file), Supervisor()
    with Signals(reloads=file is not None) as signals:
        while True:
            life = _Life(now, signals, supervisor, reloading, planned)
            life.parts = not has_parted  # once: a target that lies would never end
            try:
                following = life.live(idle, drain=drain)
            except EnvironmentRefused as error:
                if before is None or life.began:
                    raise
                reloading.refuse(str(error))
                now, before = before, None
                continue
            if following is None:
                return
            if following is now:
                has_parted = True
                continue
            now, before, planned = following, now, reloading.planned


class _Life:
    """An agent from the opening of its state to its end, or to another configuration."""

    def __init__(
        self, config: Config, signals: Signals, supervisor: Supervisor, reloading: Reloading, planned: int
    ) -> None:
        self.began = False
        #: Whether the state parts where the target has other documents under its names.
        self.parts = True
        self._config, self._signals, self._supervisor = config, signals, supervisor
        self._reloading, self._planned = reloading, planned

    def live(self, idle: float | None, *, drain: bool) -> Config | None:
        """Turn to the end; the configuration to go on with, the same where the state parts, None at the end."""
        config, signals, supervisor = self._config, self._signals, self._supervisor
        with State(config) as state:
            agent = Agent(config, state, signals.wake, self._planned)
            self.began = True
            give_back_heap()  # what the configuration and the record took to be read
            agent.reload_outcome, agent.sync.parts = self._reloading.outcome, self.parts
            self._tell()
            while not signals.received and (idle is None or agent.idle < idle) and not agent.is_over:
                agent.turn()
                supervisor.alive()
                if signals.heed() and (following := self._other(agent)) is not None:
                    return following
                if agent.sync.is_overtaken and agent.commit_now():
                    agent.finish()
                    return config
            supervisor.stopping()
            log.info("told to stop: finishing" if signals.received else "no messages: finishing")
            agent.finish(drain=drain)
            return config if agent.sync.is_overtaken else None

    def _tell(self) -> None:
        config = self._config
        for warning in exposed_files(config):
            log.warning("%s", warning)
        log.info("device %s on %s: %s", config.device.id, config.state.path, config.told)
        if self._reloading.count and not self._reloading.result:
            self._reloading.taken()
        self._supervisor.ready(f"device {config.device.id}: {config.told}")

    def _other(self, agent: Agent) -> Config | None:
        """Read the file again between two commits; the agent has ended where it is another configuration's turn."""
        if not agent.commit_now():
            self._reloading.count += 1
            self._reloading.refuse("commits fail; see the log")
            return None
        following = self._reloading.read(self._config)
        if following is None:
            agent.show_health()
            return None
        self._supervisor.reloading()
        agent.finish()
        return following
