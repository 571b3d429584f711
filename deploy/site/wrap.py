"""Wraps the prose of Markdown files at 100 characters; tables, code, headings and HTML stay as they are.

python deploy/site/wrap.py FILE…
"""

from __future__ import annotations

import re
import sys
import textwrap
from pathlib import Path

WIDTH = 100
FENCE = re.compile(r"\s*(```|~~~)")
ITEM = re.compile(r"(\s*)([-*+]|\d+\.)\s+")
#: What may not begin a line of prose, since Markdown would take it for something else.
STARTS = re.compile(r" (?=([-+*>#|=]|\d+[.)])( |$))")


def wrapped(text: str) -> str:
    """The text with its paragraphs and list items wrapped."""
    out: list[str] = []
    block: list[str] = []
    fenced = False
    for line in text.split("\n"):
        fence = FENCE.match(line)
        if fenced or fence or _fixed(line) or (not block and line.startswith("    ")):
            _flush(block, out)
            out.append(line)
        elif ITEM.match(line):
            text = bool(block) and not ITEM.match(block[0])
            _flush(block, out)
            out += [""] * (text and not line.startswith(" "))  # else Markdown takes the list for the paragraph's own
            block.append(line)
        else:
            block.append(line)
        fenced = fenced != bool(fence)
    _flush(block, out)
    return "\n".join(out)


def _fixed(line: str) -> bool:
    return (
        not line.strip() or line.lstrip()[0] in "|#<>" or line.endswith("  ") or line.startswith(("---", "===", ":::"))
    )


def _flush(block: list[str], out: list[str]) -> None:
    """Appends the block to `out`: as it is where it fits, else wrapped anew."""
    if block and max(map(len, block)) > WIDTH:
        item = ITEM.match(block[0])
        first = item[0] if item else re.match(r"\s*", block[0])[0]  # type: ignore[index]
        words = STARTS.sub("\0", " ".join([block[0][len(first) :], *(line.strip() for line in block[1:])]))
        filled = textwrap.wrap(
            words, WIDTH, initial_indent=first, subsequent_indent=" " * len(first),
            break_long_words=False, break_on_hyphens=False,
        )  # fmt: skip
        block[:] = [line.replace("\0", " ") for line in filled]
    out.extend(block)
    block.clear()


if __name__ == "__main__":
    for name in sys.argv[1:]:
        page = Path(name)
        page.write_text(wrapped(page.read_text("utf-8")), "utf-8")
