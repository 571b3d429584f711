"""`sluicegate replay`: a file of readings into the agent's state, without a broker."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from sluicegate_agent.replay import Replay


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--csv", "csv_file", type=click.Path(path_type=Path), help="Readings with a header line, a message a row."
)
@click.option(
    "--jsonl", "jsonl_file", type=click.Path(path_type=Path), help="One payload a line, in the source's format."
)
@click.option("--topic", help="The source that the readings are of, where there are several.")
@click.option("--again", is_flag=True, help="Count a file again that was counted before, from its begin.")
@click.option("--drain", is_flag=True, help="Close open buckets and hand everything on before ending.")
@click.option("--accept", is_flag=True, help="Go on although this configuration loses some of what the state holds.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of text.")
def replay(
    file: Path, csv_file: Path | None, jsonl_file: Path | None, topic: str | None, again: bool, drain: bool,
    accept: bool, as_json: bool,
) -> None:  # fmt: skip
    """Take a file of readings into the state of a configuration FILE, as if they came by MQTT.

    The columns of a CSV file are found by the paths of the source. A file is known by its content: replayed again it
    counts nothing, and one that was interrupted or has grown goes on where it was. A message that came by MQTT too is
    known within identity.horizon. No agent may be running on the same state.

    \b
      sluicegate replay agent.toml --csv readings.csv
    """
    if (csv_file is None) == (jsonl_file is None):
        raise click.UsageError("give one of --csv FILE and --jsonl FILE")
    from sluicegate_agent.changes import refuse_losses
    from sluicegate_agent.config import load
    from sluicegate_agent.logs.setting import set_up
    from sluicegate_agent.plan import refuse_over_budget
    from sluicegate_agent.replay import Replay, csv_payloads, jsonl_payloads, source_of
    from sluicegate_agent.state import State

    set_up("warning")
    config = load(file)
    refuse_over_budget(config)
    refuse_losses(config, accept=accept)
    source = source_of(config, topic)
    readings = csv_file or jsonl_file or file
    with State(config) as state:
        run = Replay(config, state, source, readings, again=again)
        before = state.counters.as_dict()
        of_csv, of_jsonl = partial(csv_payloads, readings, source), partial(jsonl_payloads, readings)
        _feed(run, readings, of_csv) if csv_file else _feed(run, readings, of_jsonl)
        run.finish(drain=drain)
        counted = {name: count - before.get(name, 0) for name, count in state.counters.as_dict().items()}
        _tell(run, readings)
        _show(run, {name: count for name, count in counted.items() if count}, as_json)
    _refuse_if_none(readings, counted)


def _refuse_if_none(readings: Path, counted: dict[str, int]) -> None:
    """Raises InputRefused for a file of which no message was taken, nor known from before."""
    from sluicegate_agent.errors import InputRefused

    refused = {name: count for name, count in counted.items() if name.startswith("refused.") and count}
    if refused and not any(counted.get(name) for name in ("accepted", "duplicates")):
        reasons = ", ".join(f"{name} {count}" for name, count in sorted(refused.items()))
        raise InputRefused(f"{readings}: none of its {counted.get('messages', 0)} messages was taken ({reasons})")


def _feed(run: Replay, readings: Path, payloads: Callable[[Callable[[bytes], None]], Iterator[bytes]]) -> None:
    size = readings.stat().st_size if readings.exists() else 0
    with click.progressbar(length=size, label=readings.name, file=sys.stderr) as bar:

        def passed(line: bytes) -> None:
            bar.update(len(line))
            run.progress.passed(line)

        for payload in payloads(passed):
            run.feed(payload)


def _tell(run: Replay, readings: Path) -> None:
    """On stderr, what of the file was counted before."""
    progress = run.progress
    if progress.lines_before:
        new = progress.lines - progress.lines_before
        click.echo(
            f"{readings.name}: {progress.lines_before} lines were counted before and not again, {new} are new"
            " (--again counts the whole file once more)",
            err=True,
        )


def _show(run: Replay, counted: dict[str, int], as_json: bool) -> None:
    from sluicegate_agent.status import table

    if as_json:
        import msgspec

        answers = list(run.answers.values())
        lines = {"known": run.progress.lines_before, "new": run.progress.lines - run.progress.lines_before}
        click.echo(msgspec.json.encode({"lines": lines, "counters": counted, "results": answers}))
        return
    rows: list[tuple[object, ...]] = [("window", "stream", "aggregate", "value", "low", "high", "exact", "readings")]
    for r in run.answers.values():
        exact = "yes" if r.exact else "no"
        rows.append(
            (r.window, r.stream, r.aggregate, _number(r.value), _number(r.low), _number(r.high), exact, r.count)
        )
    counts: list[tuple[object, ...]] = [("counter", "count"), *sorted(counted.items())]
    click.echo("\n\n".join("\n".join(table(each)) for each in (rows, counts) if len(each) > 1), nl=bool(counted))


def _number(value: Any) -> str:
    """A number, or what has parts in the order of their names."""
    if isinstance(value, dict):
        return " ".join(f"{name}={_number(part)}" for name, part in value.items())
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_number, value)) + "]"
    return "-" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
