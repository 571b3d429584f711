"""Makes the site's pictures: the tree of an A2MTA window, drawn, and reports as headless Chromium shows them.

python deploy/site/pictures.py [--report build/demo/report.html] [--tutorial report.html] [--out docs/pictures]
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from pathlib import Path

import sluicegate as sg

INK, SOFT, FILL, CUT = "#1f2933", "#7b8794", "#d5e3f0", "#f6d5c5"
READINGS = [
    20,
    24,
    21,
    23,
    22,
    26,
    25,
    23,
    24,
    27,
    25,
    28,
    26,
    24,
    25,
    27,
    23,
    22,
    24,
    26,
    25,
    23,
    22,
    24,
    26,
    27,
    25,
    24,
]
NEWEST, EACH, STEP, LEFT = 26, 4, 30, 40


def text(x: float, y: float, words: str, color: str = INK, size: int = 13, anchor: str = "middle") -> str:
    """A line of text."""
    return f'<text x="{x}" y="{y}" fill="{color}" font-size="{size}" text-anchor="{anchor}">{words}</text>'


def box(x: float, y: float, width: float, words: str, fill: str = FILL) -> str:
    """A box of the tree with its words."""
    return f'<rect x="{x}" y="{y}" width="{width}" height="26" rx="4" fill="{fill}" stroke="{INK}"/>' + text(
        x + width / 2, y + 18, words
    )


def tree_picture() -> str:
    """Readings, the buckets of a real window over them, and the tree that an AMTA keeps over the buckets."""
    window = sg.Window(
        {"sum": sg.sum()}, policy=sg.policies.count(NEWEST), histograms=[sg.SumLike(atol=EACH - 1, of="count")]
    )
    for celsius in READINGS:
        window.insert(celsius)
    counts = [bucket.count for bucket in window.buckets()]
    firsts = [len(READINGS) - sum(counts[place:]) for place in range(len(counts))]
    totals = [sum(READINGS[first : first + count]) for first, count in zip(firsts, counts, strict=True)]
    base, edge = 250, LEFT + (len(READINGS) - NEWEST) * STEP - 3
    parts = [
        text(LEFT + 340, 127, "pairs, and pairs of pairs", SOFT, anchor="start"),
        text(LEFT, base - 14, "buckets", SOFT, anchor="start"),
    ]
    centre: dict[tuple[int, int], float] = {}
    for index, (first, count, total) in enumerate(zip(firsts, counts, totals, strict=True)):
        x, width = LEFT + first * STEP, count * STEP - 6
        cut = first < len(READINGS) - NEWEST
        parts.append(box(x, base, width, f"{count} · {total}", CUT if cut else FILL))
        centre[0, index] = x + width / 2
    nodes, level = list(zip(counts, totals, strict=True)), 1
    while (size := (len(counts) + 1 >> level) - 1) > 0:  # a pair has its parent unless it is the last of its level
        pairs = zip(nodes[: 2 * size : 2], nodes[1 : 2 * size : 2], strict=True)
        nodes = [(n + m, x + y) for (n, x), (m, y) in pairs]
        for node, (count, total) in enumerate(nodes):
            below = [centre[level - 1, child] for child in (2 * node, 2 * node + 1)]
            middle, y = sum(below) / 2, base - 70 * level
            parts += [f'<path d="M{middle} {y + 26} L{x} {y + 70}" stroke="{SOFT}" fill="none"/>' for x in below]
            parts.append(box(middle - 42, y, 84, f"{count} · {total}"))
            centre[level, node] = middle
        level += 1
    for place, celsius in enumerate(READINGS):
        color = SOFT if place < len(READINGS) - NEWEST else INK
        parts.append(text(LEFT + place * STEP + STEP / 2 - 3, base + 55, str(celsius), color))
    parts += [
        f'<path d="M{edge} 100 V{base + 68}" stroke="#c2410c" stroke-width="2" stroke-dasharray="5 4"/>',
        text(edge + 6, base + 84, f"the window: the newest {NEWEST} readings", "#c2410c", anchor="start"),
    ]
    width = LEFT * 2 + len(READINGS) * STEP
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 90 {width} 250" font-family="sans-serif">'
        f'<rect y="90" width="{width}" height="250" fill="white"/>' + "".join(parts) + "</svg>\n"
    )


#: Pixels of the window that are not the page's: without them a picture ends in an empty strip.
FRAME = 150


def photograph(page: Path, out: Path, width: int, height: int) -> None:
    """The page as Chromium shows it, in at most 64 colours: some 30 KB."""
    from PIL import Image

    with tempfile.TemporaryDirectory() as profile:
        shot = Path(profile) / "shot.png"
        subprocess.run(
            [
                "chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                f"--user-data-dir={profile}", "--virtual-time-budget=4000", f"--window-size={width},{height + FRAME}",
                f"--screenshot={shot}", page.resolve().as_uri(),
            ],
            check=True, capture_output=True, timeout=120,
        )  # fmt: skip
        Image.open(shot).convert("RGB").crop((0, 0, width, height)).quantize(64).save(out, optimize=True)


def main() -> None:
    """The drawing always; a report where it is given."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--report", type=Path)
    parser.add_argument("--tutorial", type=Path)
    parser.add_argument("--out", type=Path, default=Path("docs/pictures"))
    options = parser.parse_args()
    (options.out / "a2mta-tree.svg").write_text(tree_picture(), "utf-8")
    if options.report:
        photograph(options.report, options.out / "report.png", 1100, 840)
    if options.tutorial:
        photograph(options.tutorial, options.out / "tutorial.png", 1100, 840)


if __name__ == "__main__":
    main()
