"""A program that commits to tables and kills itself at a step: `python killed_steps.py FOLDER [each]`.

Prints a line of JSON: how many steps there are, at how many of them a child was killed, and what was wrong afterwards.
Every run is a fork of a process that has not used Arrow, whose threads do not survive one.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from random_worlds import Cut, random_fleet
from table_worlds import Rows, definition_of, differences, documents_of, here, store_at, table_of, take_in, windows

from sluicegate_cloud.places import folder
from sluicegate_cloud.table import retention
from sluicegate_cloud.table.versions import Store, Version

CUT = Cut(60_000_000, 3, 0, 30)
DEFINITION = definition_of(CUT, ("count", "mean", "min", "max"), by=(("site",),), shards=1)
#: What a commit calls of the operating system, in the module of a folder.
CALLS = ((Path, "write_bytes"), (Path, "hardlink_to"), (Path, "unlink"), (folder, "_sync"), (folder.pa, "OSFile"))

#: How many of them make the file that says that a version counts: it is written, synced, linked, synced, unlinked.
OWN = 5


def documents() -> list[bytes]:
    """Those of three boards, some cut twice."""
    rng = random.Random(28)
    told = documents_of(random_fleet(rng, CUT, 3, 24, ordinary=True), "s", rng)
    rng.shuffle(told)
    return told


def first(place: Path) -> None:
    """The first version of a table."""
    store, version = store_at(place, DEFINITION)
    take_in(store, version, table_of(documents()[::2]))


def second(place: Path) -> Version:
    """The version after it, with what is new; only its own files stay."""
    store = Store(place)
    told = documents()
    version = take_in(store, loaded(store), table_of(told[1::2], len(told)))
    store.vacuum(kept=1, abandoned_s=-1)
    return version


def retained(place: Path) -> Version:
    """The version after it, without what is old."""
    store = Store(place)
    version = loaded(store)
    middle = sorted(table_of(documents())["t_last"].to_pylist())[3]
    until = retention.horizon_of(version, middle, {2 * CUT.slide: None})
    version = retention.retain(here, store, version, until, {2 * CUT.slide: None}, now_us=0)
    store.vacuum(kept=1, abandoned_s=-1)
    return version


WORK: dict[str, Callable[[Path], Version]] = {"merge": second, "retain": retained}


def loaded(store: Store) -> Version:
    """The newest."""
    version = store.load()
    assert version is not None
    return version


def rows(place: Path) -> Rows:
    """Of the newest version."""
    store = Store(place)
    return windows(store, loaded(store))


def killing(at: int, steps: list[str]) -> None:
    """Patch CALLS so that this process dies before the step `at`; `steps`: their names, as they are come to."""

    def step(name: str, call: Any) -> Any:
        def counted(*given: Any, **more: Any) -> Any:
            if len(steps) == at:
                os.kill(os.getpid(), signal.SIGKILL)
            steps.append(name)
            return call(*given, **more)

        return counted

    for owner, name in CALLS:
        setattr(owner, name, step(name, getattr(owner, name)))


def forked(work: Callable[[], Any]) -> Any:
    """What `work` comes to in a child of its own; None where it was killed. Raises RuntimeError where it failed."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(writing, json.dumps(work()).encode())
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        told = pipe.read()
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return None
    if not told:
        raise RuntimeError("a child failed")
    return json.loads(told)


def undisturbed(place: Path, work: Callable[[Path], Version]) -> list[str]:
    """The steps there are."""
    steps: list[str] = []
    killing(-1, steps)
    work(place)
    return steps


def judged(place: Path, before: Path, after: Path, work: Callable[[Path], Version]) -> list[str]:
    """What is wrong once a run has died: the rows are those before or after, and a rerun comes to those after."""
    now = rows(place)
    wrong = (
        []
        if any(now.keys() == rows(of).keys() and not differences(now, rows(of)) for of in (before, after))
        else ["torn"]
    )
    work(place)
    return wrong + differences(rows(place), rows(after))[:3]


def tried(folder_: Path, name: str, each: int) -> dict[str, Any]:
    """All that is wrong after kills at every `each`-th step, and at every step that makes the version's own file."""
    work, before, after = WORK[name], folder_ / "before", folder_ / f"after-{name}"
    shutil.copytree(before, after)
    steps = forked(lambda: undisturbed(after, work))
    own = range(steps.index("write_bytes"), steps.index("write_bytes") + OWN + 1)
    wrong, killed = [], 0
    for at in (at for at in range(len(steps)) if at in own or at % each == 0):
        place = folder_ / f"{name}-{at}"
        shutil.copytree(before, place)
        killed += forked(lambda place=place, at=at: (killing(at, []), work(place).number)[1]) is None
        found = forked(lambda place=place: judged(place, before, after, work))
        wrong += [f"{name}: killed before step {at} ({steps[at]}): {text}" for text in found]
        shutil.rmtree(place)
    return {"steps": len(steps), "killed": killed, "wrong": wrong[:9]}


def main(place: Path, each: int) -> None:
    """Every kind of work."""
    forked(lambda: first(place / "before"))
    print(json.dumps({name: tried(place, name, each) for name in WORK}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
