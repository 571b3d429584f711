"""Many runs side by side: workers that each have a launcher, one RabbitMQ for all; what came of each, as it comes."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import logging
import multiprocessing
import os
import shutil
import signal
import threading
import traceback
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path

from campaign import brokers, oracle, storage
from campaign.agents import Launcher
from campaign.plan import BROKERS, Plan, draw
from campaign.run import Outcome, Run, Tools

FAKETIME = ("/usr/lib/{}-linux-gnu/faketime/libfaketimeMT.so.1", "/usr/lib/faketime/libfaketimeMT.so.1")


def faketime() -> str | None:
    """The library that moves a process's clock."""
    candidates = [path.format(os.uname().machine) for path in FAKETIME]
    return next((path for path in candidates if Path(path).exists()), None)


def missing() -> list[str]:
    """What is not here, what goes without it, and how to install it."""
    said = [f"{text}: its runs are left out" for kind, text in brokers.MISSING.items() if not brokers.available(kind)]
    if faketime() is None:
        said.append("libfaketime is not installed (apt install faketime): no clock is stepped")
    if not storage.can_mount():
        said.append("no tmpfs can be mounted (that needs root): a disk is full by RLIMIT_FSIZE, and never read-only")
    if not storage.can_cut_power():
        said.append("no ext4 can be mounted on a loop device (that needs root and mkfs.ext4): no power is cut")
    return said


class Worker:
    """One process's event loop, launchers and folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runner = asyncio.Runner()
        self.launcher: Launcher | None = None
        self.faked: Launcher | None = None

    def run(self, plan: Plan, rabbit: int | None) -> Outcome:
        """Carry a plan out; a failure of the driver itself is told as such."""
        try:
            return self.runner.run(self._run(plan, rabbit))
        except Exception as error:
            where = traceback.format_exc().splitlines()[-6:]
            return Outcome(plan, oracle.Verdict(stuck=1, words=[f"the driver failed: {error!r}", *where]))

    async def _run(self, plan: Plan, rabbit: int | None) -> Outcome:
        if self.launcher is None:
            self.launcher = await Launcher().open()
        library = faketime()
        if "clock" in plan.families and self.faked is None and library is not None:
            environment = {
                "LD_PRELOAD": library,
                "FAKETIME_NO_CACHE": "1",
                "FAKETIME_DONT_FAKE_MONOTONIC": "1",
                "DONT_FAKE_MONOTONIC": "1",
            }
            self.faked = await Launcher(environment).open()
        return await Run(plan, Tools(self.launcher, self.faked, rabbit, self.folder)).carry_out()


_worker: list[Worker] = []


def _begin(folder: Path) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.getLogger("asyncio").setLevel(logging.ERROR)  # it tells of every write to what was just cut
    _worker.append(Worker(folder / f"worker-{os.getpid()}"))


def _carry_out(plan: Plan, rabbit: int | None) -> Outcome:
    return _worker[0].run(plan, rabbit)


def plans(seed: int, count: int, wanted: Callable[[Plan], bool], among: Sequence[str] = BROKERS) -> list[Plan]:
    """The first `count` plans of a seed that are wanted and whose broker is here, out of those `among`."""
    found: list[Plan] = []
    index = 0
    while len(found) < count and index < 1000 + 200 * count:
        plan = draw(seed, index, among)
        if brokers.available(plan.kind) and wanted(plan):
            found.append(plan)
        index += 1
    return found


@contextlib.contextmanager
def _rabbit(chosen: Sequence[Plan], folder: Path) -> Iterator[Callable[[], int | None]]:
    """Start RabbitMQ beside the first runs, if any plan wants it; the port as soon as it is there."""
    if not any(plan.kind == "rabbitmq" for plan in chosen):
        yield lambda: None
        return
    port: concurrent.futures.Future[int] = concurrent.futures.Future()
    over = threading.Event()

    def serve() -> None:
        try:
            with brokers.rabbitmq(folder / "rabbitmq") as number:
                port.set_result(number)
                over.wait()
        except BaseException as error:
            if not port.done():
                port.set_exception(error)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield lambda: port.result(150)
    finally:
        over.set()
        thread.join()


def campaign(chosen: Sequence[Plan], jobs: int) -> Generator[Outcome, None, None]:
    """What came of each plan, in the order in which they end; RabbitMQ's last, since it takes long to start."""
    folder = storage.base()
    mine = [plan for plan in chosen if plan.kind != "rabbitmq"]
    rabbits = [plan for plan in chosen if plan.kind == "rabbitmq"]
    context = multiprocessing.get_context("spawn")
    try:
        with (
            _rabbit(chosen, folder) as port,
            concurrent.futures.ProcessPoolExecutor(
                min(jobs, len(chosen)), context, initializer=_begin, initargs=(folder,)
            ) as pool,
        ):
            futures = [pool.submit(_carry_out, plan, None) for plan in mine]
            try:
                for done in concurrent.futures.as_completed(futures):
                    yield _kept(done.result())
                futures = [pool.submit(_carry_out, plan, port()) for plan in rabbits]
                for done in concurrent.futures.as_completed(futures):
                    yield _kept(done.result())
            finally:
                pool.shutdown(cancel_futures=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _kept(outcome: Outcome) -> Outcome:
    """A run that failed leaves its configuration and log where a person can look."""
    source = Path(outcome.folder) if outcome.folder else None
    if outcome.verdict.failed and source is not None and source.exists() and not outcome.plan.plant:
        kept = (
            Path(os.environ.get("SLUICEGATE_FAULTS_KEEP", "build/faults"))
            / f"run-{outcome.plan.seed}-{outcome.plan.index}"
        )
        kept.mkdir(parents=True, exist_ok=True)
        for file in ("agent.toml", "log", "status.json", "wire"):
            if (source / file).exists():
                shutil.copy(source / file, kept / file)
    if source is not None:
        shutil.rmtree(source, ignore_errors=True)
    return outcome
