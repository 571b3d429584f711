"""`sluicegate init`: five questions, some seconds of listening, and a configuration that works."""

from __future__ import annotations

import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from sluicegate_agent.beginning.listen import Heard
    from sluicegate_agent.beginning.shapes import Shape
    from sluicegate_agent.beginning.writing import Answers

_SHOWN = 40


@click.command()
@click.argument("file", type=click.Path(path_type=Path), default="agent.toml")
@click.option("--device", help="The name of this device.")
@click.option("--broker", help="HOST or HOST:PORT of the MQTT broker; TLS for every host but this one.")
@click.option("--username", help="The user at the broker; empty for none.")
@click.option("--password-file", default="", help="A file whose first line is that user's password.")
@click.option(
    "--topic", "topics", multiple=True, help="What to listen to, such as plant/#; may be given several times."
)
@click.option("--state", help="The folder for everything durable.")
@click.option(
    "--seconds", type=click.FloatRange(0.5, 3600), default=10.0, show_default=True, help="How long to listen."
)
@click.option("--yes", is_flag=True, help="Ask nothing: take what is given, and the defaults.")
@click.option("--force", is_flag=True, help="Write over FILE.")
def init(
    file: Path, device: str | None, broker: str | None, username: str | None, password_file: str,
    topics: tuple[str, ...], state: str | None, seconds: float, yes: bool, force: bool,
) -> None:  # fmt: skip
    """Write a configuration FILE from what a broker's topics say.

    Asks for device, broker, user, topics and folder, listens for ten seconds with a session of its own, shows topics
    and fields with an example each, and writes sources, streams and a window that pass `check`.

    \b
      sluicegate init
      sluicegate init agent.toml --device press-1 --broker 127.0.0.1 --topic 'plant/#' --state state --yes
    """
    from sluicegate_agent.errors import InputRefused

    if file.exists() and not force:
        raise InputRefused(f"{file} is there already: give another name, or --force")
    answers, listened = _asked(device, broker, username, password_file, topics, state, yes=yes)
    heard = _heard(answers, listened, seconds, file)
    _write(file, answers, heard, ", ".join(listened), seconds)


def _asked(
    device: str | None, broker: str | None, username: str | None, password_file: str, topics: tuple[str, ...],
    state: str | None, *, yes: bool,
) -> tuple[Answers, list[str]]:  # fmt: skip
    from sluicegate_agent.beginning.writing import Answers
    from sluicegate_agent.errors import InputRefused

    def ask(given: str | None, text: str, usual: str) -> str:
        if given is not None or yes:
            return usual if given is None else given
        answer: str = click.prompt(text, default=usual, show_default=bool(usual), err=True)
        return answer

    name = ask(device, "1/5 Name of this device", socket.gethostname().partition(".")[0] or "device")
    place = ask(broker, "2/5 MQTT broker (host or host:port)", "localhost")
    user = ask(username, "3/5 User at the broker (empty: none)", "")
    if user and not password_file and not yes:
        password_file = click.prompt("    File whose first line is the password", err=True)
    listened = [*topics] or ask(None, "4/5 Topics to listen to, with blanks between", "#").split()
    folder = ask(state, "5/5 Folder for everything durable", "state")
    host, colon, port = place.rpartition(":") if place.count(":") == 1 else (place, "", "")
    if (colon and not port.isdecimal()) or host.isdecimal():
        raise InputRefused(f"--broker {place}: expected HOST or HOST:PORT")
    return Answers(name, host, int(port) if colon else None, user, password_file, folder), listened


def _heard(answers: Answers, topics: list[str], seconds: float, file: Path) -> Heard:
    from sluicegate_agent.beginning.listen import listen
    from sluicegate_agent.beginning.writing import base
    from sluicegate_agent.config import build

    trial = base(answers) | {"source": [{"topic": "#", "streams": {"x": "x"}}], "results": {"topic": ""}}
    config = build(trial, file.absolute())
    with click.progressbar(length=round(10 * seconds), label="listening", file=sys.stderr) as bar:
        return listen(config, topics, seconds, lambda count: bar.update(1))


def _write(file: Path, answers: Answers, heard: Heard, listened: str, seconds: float) -> None:
    from sluicegate_agent.beginning.shapes import shape_of
    from sluicegate_agent.beginning.writing import configuration
    from sluicegate_agent.errors import InputRefused

    mine = ("sluicegate/", "homeassistant/")
    found = {topic: each for topic, each in heard.payloads.items() if each and not topic.startswith(mine)}
    shapes = {topic: shape_of(topic, payloads) for topic, payloads in found.items()}
    _show(shapes)
    if not any(shape.fields for shape in shapes.values()):
        raise InputRefused(
            f"nothing that could be a reading was published on {listened} in {seconds:g} s ({len(shapes)} topics): "
            "listen to other topics or longer (--topic, --seconds), or begin with `sluicegate check --sample`"
        )
    text = configuration(answers, shapes, file.absolute())
    file.write_text(text, encoding="utf-8")
    click.echo(f"{file}: written. Next: `sluicegate check {file} --explain`, `sluicegate run {file}`.")


def _show(shapes: dict[str, Shape]) -> None:
    from sluicegate_agent.status import table

    rows: list[tuple[object, ...]] = [("topic", "field", "example", "time", "number")]
    for topic, shape in shapes.items():
        if shape.format == "sparkplug":
            rows.append((topic, "-", "Sparkplug B: see docs/reference/payloads.md", "", ""))
        elif not shape.fields:
            rows.append((topic, "-", "no number in it", "", ""))
        rows += [(topic, path or "(the payload)", value, shape.time, shape.sequence) for path, value in shape.fields]
    click.echo("\n".join(table(rows[: _SHOWN + 1])))
    if len(rows) > _SHOWN + 1:
        click.echo(f"… and {len(rows) - _SHOWN - 1} more")
