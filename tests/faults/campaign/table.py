"""The command line of the campaign: chooses the runs, prints a table by combination, and how to repeat what failed."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from campaign import foreign, pool
from campaign.plan import BROKERS, Plan, draw
from campaign.run import Outcome

COLUMNS = ("runs", "kills", "cuts", "readings", "lost", "twice", "doubt", "refused", "silent", "stuck")


def row(outcomes: Sequence[Outcome]) -> tuple[int, ...]:
    """The columns over some runs."""
    verdicts = [outcome.verdict for outcome in outcomes]
    counted = [sum(getattr(verdict, name) for verdict in verdicts) for name in COLUMNS[4:]]
    done = (sum(o.kills for o in outcomes), sum(o.cuts for o in outcomes), sum(o.published for o in outcomes))
    return (len(outcomes), *done, *counted)


def table(outcomes: Sequence[Outcome]) -> str:
    """By broker and identity, then by family of faults, then all."""
    rows: list[tuple[object, ...]] = [("combination", *COLUMNS)]
    for broker, identity in sorted({(outcome.plan.broker, outcome.plan.identity) for outcome in outcomes}):
        chosen = [o for o in outcomes if (o.plan.broker, o.plan.identity) == (broker, identity)]
        rows.append((f"{broker}, {identity}", *row(chosen)))
    for way in sorted({outcome.plan.way for outcome in outcomes}):
        rows.append((f"by {way}", *row([o for o in outcomes if o.plan.way == way])))
    for family in sorted({family for outcome in outcomes for family in outcome.plan.families}):
        rows.append((f"with {family}", *row([o for o in outcomes if family in o.plan.families])))
    rows.append(("all", *row(outcomes)))
    widths = [max(len(str(line[column])) for line in rows) for column in range(len(rows[0]))]
    return "\n".join("  ".join(_cells(line, widths)) for line in rows)


def _cells(line: Sequence[object], widths: Sequence[int]) -> Iterator[str]:
    yield str(line[0]).ljust(widths[0])
    for cell, width in zip(line[1:], widths[1:], strict=True):
        yield str(cell).rjust(width)


def told(outcome: Outcome) -> str:
    """A run that failed: what is wrong, and the command that repeats it."""
    plan = outcome.plan
    families = ", ".join(plan.families) or "kills and cuts"
    head = f"FAILED seed {plan.seed} run {plan.index}: {plan.broker}, {plan.identity}, by {plan.way}, {families}"
    settings = ", ".join(f"{name} {value}" for name, value in plan.settings.items())
    lines = [head, f"    {settings}", *(f"    {word}" for word in outcome.verdict.words)]
    broker = f" BROKER={plan.kind}" if foreign.is_foreign(plan.kind) else ""
    return "\n".join([*lines, f"    again: make faults SEED={plan.seed} RUN={plan.index}{broker}"])


def _among(broker: str | None) -> tuple[str, ...]:
    """The brokers to draw from: a foreign one is drawn where it is asked for alone."""
    found = tuple(each for each in foreign.BROKERS if broker and each.startswith(broker))
    return found or BROKERS


def _wanted(options: argparse.Namespace) -> Callable[[Plan], bool]:
    def wanted(plan: Plan) -> bool:
        return (
            (options.broker is None or plan.broker.startswith(options.broker))
            and (options.identity is None or plan.identity == options.identity)
            and (options.family is None or options.family in plan.families)
            and (options.way is None or plan.way == options.way)
        )

    return wanted


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it; 1 where a promise was broken."""
    parser = argparse.ArgumentParser(prog="campaign", description=__doc__)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--run", type=int, help="only this one")
    parser.add_argument("--jobs", type=int, default=3 * (os.cpu_count() or 1))
    parser.add_argument("--broker", help="its name; those of tests/faults/foreign are built for it")
    parser.add_argument("--identity")
    parser.add_argument("--family")
    parser.add_argument("--way", help="mqtt, shared, sparkplug, http or tail")
    parser.add_argument("--each", action="store_true", help="a line for each run as it ends")
    parser.add_argument("--plant", default="", help="a defect put in on purpose (campaign.plants)")
    options = parser.parse_args(arguments)
    for line in pool.missing():
        print(f"faults: {line}", file=sys.stderr)
    among = _among(options.broker)
    for why in filter(None, map(foreign.missing, {kind.partition("-")[0] for kind in among} & {*foreign.KINDS})):
        print(f"faults: {why}", file=sys.stderr)
    if options.run is not None:
        chosen = [draw(options.seed, options.run, among)]
    else:
        chosen = pool.plans(options.seed, options.runs, _wanted(options), among)
    chosen = [replace(plan, plant=options.plant) for plan in chosen]
    began = time.monotonic()
    outcomes = list(_shown(pool.campaign(chosen, options.jobs), each=options.each))
    print(table(outcomes))
    failed = sum(outcome.verdict.failed for outcome in outcomes)
    print(f"{len(outcomes)} runs in {time.monotonic() - began:.0f} s, {failed} failed (seed {options.seed})")
    return int(failed > 0 or len(outcomes) < len(chosen))


def _shown(outcomes: Iterable[Outcome], *, each: bool) -> Iterator[Outcome]:
    for outcome in outcomes:
        if each:
            plan, verdict = outcome.plan, outcome.verdict
            kinds = ", ".join((plan.broker, plan.identity, plan.way, *plan.families))
            counted = f"{outcome.kills} kills, {outcome.cuts} cuts, {verdict.doubt} of {outcome.published} in doubt"
            print(f"run {plan.index}: {kinds}: {counted}, {outcome.seconds:.1f} s", flush=True)
        if outcome.verdict.failed:
            print(told(outcome), flush=True)
        yield outcome
