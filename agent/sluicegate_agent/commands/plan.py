"""`sluicegate plan`: the worst case of a configuration in bytes, before anything runs; or advice from readings."""

from __future__ import annotations

from pathlib import Path

import click

MOST = 200_000


@click.command()
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.option("--advise", type=click.Path(path_type=Path), metavar="FILE.csv", help="Try what fits these readings.")
@click.option("--value", help="With --advise: the column of readings; by default the last that holds numbers.")
@click.option("--time", "clock", help='With --advise: the column of times; "" for none; by default it is looked for.')
@click.option("--only", metavar="COLUMN=VALUE", help="With --advise: only rows such as device=7.")
@click.option("--window", help='With --advise: a length such as "24h", or a number of readings.')
@click.option("--aggregate", "aggregates", multiple=True, help="With --advise: mean, sum, std, variance, max, min.")
@click.option("--error", default="1%", show_default=True, help="With --advise: the greatest error of a value.")
@click.option("--most", default=MOST, show_default=True, help="With --advise: readings to try, from the file's begin.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of a table.")
def plan(
    file: Path | None, advise: Path | None, value: str | None, clock: str | None, only: str | None,
    window: str | None, aggregates: tuple[str, ...], error: str, most: int, as_json: bool,
) -> None:  # fmt: skip
    """Show the worst case of a configuration FILE: memory and disk in bytes.

    Whatever arrives and however long the network is away, the agent stays within it. `run` refuses a configuration
    that exceeds its budgets ([state] memory and disk). Exit code 1 says that this one does.

    With --advise, no configuration is needed: each method is tried on the readings of a CSV file beside the exact
    window, and the one of least memory that stayed within the error is named.

    \b
      sluicegate plan agent.toml
      sluicegate plan --advise readings.csv --window 24h --aggregate mean --aggregate max
    """
    if (file is None) == (advise is None):
        raise click.UsageError("give a configuration FILE, or --advise FILE.csv")
    if advise is not None:
        _advise(advise, value, clock, only, window, aggregates, error, most, as_json)
    elif file is not None:
        _worst_case(file, as_json)


def _worst_case(file: Path, as_json: bool) -> None:
    from sluicegate_agent.budget.forecast import lines
    from sluicegate_agent.config import load
    from sluicegate_agent.plan import plan as worst_case
    from sluicegate_agent.plan import show

    config = load(file)
    worst = worst_case(config)
    if as_json:
        import json

        click.echo(json.dumps(worst.as_dict(), indent=2))
    else:
        click.echo(show(worst))
        for line in lines(config):
            click.echo(line)
    raise SystemExit(0 if worst.fits else 1)


def _advise(
    file: Path, value: str | None, clock: str | None, only: str | None, window: str | None,
    aggregates: tuple[str, ...], error: str, most: int, as_json: bool,
) -> None:  # fmt: skip
    from sluicegate_agent.advice.options import (
        checked_aggregates,
        checked_error,
        checked_most,
        checked_only,
        policy_of,
    )  # fmt: skip
    from sluicegate_agent.advice.readings import read
    from sluicegate_agent.advice.trials import advise, show

    names, limit = checked_aggregates(aggregates), checked_error(error)
    readings = read(file, value, clock, checked_most(most), checked_only(only))
    policy, called = policy_of(window, readings)
    found = [advise(readings, name, policy, called, limit) for name in names]
    if as_json:
        import json

        told: dict[str, object] = {"file": str(file), "column": readings.column, "times": readings.clock}
        told |= {"cut_short": readings.cut_short, "passed_over": readings.passed_over}
        told |= {"late": readings.late()[0]}
        told["advice"] = [each.as_dict() for each in found]
        click.echo(json.dumps(told, indent=2))
    else:
        click.echo(show(found, readings))
