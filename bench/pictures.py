"""Draws the pictures of docs/how-to/choosing.md and docs/explanation/how-exact.md from real readings.

python bench/pictures.py [--data ../shared/data] [--out docs/pictures]

Above, one window and its buckets, each a stripe, the readings as points; below, what the window answered over some days
(the band) beside the exact result. The readings are numenta/NAB's machine and ambient temperature.
"""

from __future__ import annotations

import argparse
import csv
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl

mpl.use("svg")
import matplotlib.dates as dates
import matplotlib.pyplot as plt

import sluicegate as sg

INK, SOFT, BAND, EXACT = "#1f2933", "#9aa5b1", "#2f6fab", "#c2410c"
STRIPES = ("#eef3f8", "#d5e3f0")
HOUR = 3_600_000_000
STYLE = {
    "svg.fonttype": "none", "svg.hashsalt": "sluicegate", "font.family": "sans-serif", "font.size": 11,
    "axes.edgecolor": SOFT, "axes.labelcolor": INK, "text.color": INK, "xtick.color": INK, "ytick.color": INK,
    "axes.spines.top": False, "axes.spines.right": False, "figure.facecolor": "white", "axes.facecolor": "white",
    "axes.titlesize": 11, "axes.titlelocation": "left", "path.simplify_threshold": 0.4,
}  # fmt: skip


class Reading(NamedTuple):
    """A time in µs and a value in °F."""

    time: int
    value: float


class Picture(NamedTuple):
    """What one picture shows: a window over a file, the moment it is looked at, and the days its answers are drawn."""

    file: str
    aggregate: str
    policy: Any
    histograms: list[Any]
    moment: datetime
    days: int
    each: int  # every so many answers is drawn
    window: str
    note: str


def day(text: str) -> datetime:
    """A day, or a time of it."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


PICTURES = {
    "sum-like": Picture(
        "machine_temperature.csv", "mean", sg.policies.time("24h"), [sg.SumLike(error=0.05)], day("2013-12-16 17:00"),
        5, 6, "mean of 24 hours", "SumLike(error=0.05)"
    ),
    "max-like": Picture(
        "ambient_temperature.csv", "max", sg.policies.time("7d"), [sg.MaxLike(block=24)], day("2013-08-30 12:00"),
        40, 2, "maximum of 7 days", "MaxLike(block=24)"
    ),
    "hop": Picture(
        "machine_temperature.csv", "mean", sg.policies.count(288, hop=72), [sg.Hop()], day("2013-12-20 17:00"),
        5, 6, "mean of 288 to 359 readings, hopping by 72", "Hop()"
    ),
    "constrained": Picture(
        "machine_temperature.csv", "mean", sg.policies.time("24h"), [sg.Constrained(16)], day("2013-12-16 17:00"),
        5, 6, "mean of 24 hours", "Constrained(16)"
    ),
}  # fmt: skip


def read(path: Path) -> list[Reading]:
    """Rows of timestamp and value."""
    with path.open(newline="") as file:
        return [
            Reading(round(day(row["timestamp"]).timestamp()) * 1_000_000, float(row["value"]))
            for row in csv.DictReader(file)
        ]


def moment_of(time: int) -> datetime:
    """µs as what matplotlib draws."""
    return datetime.fromtimestamp(time / 1e6, UTC)


def draw(picture: Picture, readings: list[Reading], out: Path) -> None:
    """One picture as SVG."""
    aggregate = {picture.aggregate: getattr(sg, picture.aggregate)()}
    window = sg.Window(aggregate, policy=picture.policy, histograms=picture.histograms)
    exact = sg.Window(aggregate, policy=picture.policy)
    figure, (above, below) = plt.subplots(2, 1, figsize=(8.4, 5.4), height_ratios=(1, 1), layout="constrained")
    begin = picture.moment.timestamp() * 1e6 - picture.days * 24 * HOUR
    answers, done = [], []
    for i, reading in enumerate(readings):
        if moment_of(reading.time) > picture.moment:
            break
        done.append(reading)
        window.insert(reading.value, time=reading.time)
        exact.insert(reading.value, time=reading.time)
        if reading.time >= begin and i % picture.each == 0:
            answers.append((reading.time, window.query(bounds=True)[picture.aggregate], exact.query()))
    draw_buckets(above, window, done)
    draw_answers(below, picture, answers)
    above.set_title(
        f"One window, {picture.window}: {len(exact):,} readings in {len(window):,} buckets ({picture.note})"
    )
    save(figure, out)


def draw_buckets(axes: Any, window: sg.Window, readings: list[Reading]) -> None:
    """Each bucket a stripe from its first to its last reading; the readings as points."""
    buckets = window.buckets()
    begin = buckets[0].t_first
    shown = [reading for reading in readings if reading.time >= begin]
    edges = [bucket.t_first for bucket in buckets] + [readings[-1].time]
    for i, (start, end) in enumerate(pairwise(edges)):
        axes.axvspan(moment_of(start), moment_of(end), color=STRIPES[i % 2], linewidth=0)
    times = [moment_of(reading.time) for reading in shown]
    axes.plot(times, [reading.value for reading in shown], ".", color=INK, markersize=2.5)
    axes.set_xlim(moment_of(begin), times[-1])
    axes.set_ylabel("reading, °F")
    tidy(axes)


def draw_answers(axes: Any, picture: Picture, answers: list[Any]) -> None:
    """The answers where all are exact; else how far from the exact result they and their intervals reach."""
    times = [moment_of(time) for time, _, _ in answers]
    exact = [results[picture.aggregate] for *_, results in answers]
    sure = all(bounded.low == bounded.high for _, bounded, _ in answers)
    if sure:
        axes.plot(times, exact, color=EXACT, linewidth=1.3)
        axes.set_title(f"Its answers over {picture.days} days: every one is exact")
        axes.set_ylabel(f"{picture.aggregate}, °F")
    else:
        draw_band(axes, picture, times, [(bounded, x) for (_, bounded, _), x in zip(answers, exact, strict=True)])
    axes.set_xlim(times[0], times[-1])
    tidy(axes)


def draw_band(axes: Any, picture: Picture, times: list[datetime], pairs: list[Any]) -> None:
    """Distances from the exact result, which is the line at 0."""
    low, high = [round(b.low - x, 3) for b, x in pairs], [round(b.high - x, 3) for b, x in pairs]
    widths = sorted((b.high - b.low) / abs(b.value) for b, _ in pairs)
    axes.fill_between(times, low, high, color=BAND, alpha=0.35, linewidth=0, label="certain interval")
    axes.plot(times, [round(b.value - x, 3) for b, x in pairs], color=EXACT, linewidth=0.8, label="answer")
    axes.axhline(0.0, color=INK, linewidth=0.6)
    middle, widest = widths[len(widths) // 2], widths[-1]
    axes.set_title(
        f"{picture.days} days of answers: intervals {middle:.2%} of the mean wide (median), {widest:.2%} at most"
    )
    axes.set_ylabel("°F from the exact mean")
    axes.legend(frameon=False, loc="upper left", ncols=2, fontsize=10)
    axes.margins(y=0.25)


def tidy(axes: Any) -> None:
    """Dates that can be read."""
    locator = dates.AutoDateLocator(minticks=4, maxticks=8, tz=UTC)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator, tz=UTC))


def draw_cut(out: Path) -> None:
    """Five buckets of four readings and a window whose edge cuts the first: the numbers of how-exact.md."""
    values = [20, 24, 21, 23, 22, 26, 25, 23, 24, 27, 25, 28]
    figure, axes = plt.subplots(figsize=(8.4, 3.6), layout="constrained")
    for i in range(3):
        axes.axvspan(4 * i + 0.5, 4 * i + 4.5, color=STRIPES[i % 2], linewidth=0)
        part = values[4 * i : 4 * i + 4]
        text = f"bucket {i + 1}\n4 readings, sum {sum(part)}\n{min(part)} … {max(part)}"
        axes.text(4 * i + 2.5, 33.6, text, ha="center", va="top")
    axes.plot(range(1, 3), values[:2], "o", color=SOFT, markerfacecolor="white")
    axes.plot(range(3, 13), values[2:], "o", color=INK)
    axes.axvline(2.5, ymax=0.74, color=EXACT, linewidth=1.5)
    axes.annotate("window of the newest 10 begins here", (2.5, 18.6), (2.7, 18.4), color=EXACT, va="center")
    axes.set_ylim(17.5, 34)
    axes.set_xlim(0.5, 12.5)
    axes.set_xticks(range(1, 13))
    axes.set_xlabel("reading, in order of arrival")
    axes.set_ylabel("value, °C")
    save(figure, out)


def save(figure: Any, out: Path) -> None:
    """Without a date, so that the same readings give the same file."""
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out, metadata={"Date": None})
    plt.close(figure)


def main() -> None:
    """Draw all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--out", type=Path, default=Path("docs/pictures"))
    options = parser.parse_args()
    with mpl.rc_context(STYLE):
        for name, picture in PICTURES.items():
            draw(picture, read(options.data / picture.file), options.out / f"{name}.svg")
            print(f"{name}.svg: {(options.out / f'{name}.svg').stat().st_size:,} bytes")
        draw_cut(options.out / "cut-bucket.svg")


if __name__ == "__main__":
    main()
