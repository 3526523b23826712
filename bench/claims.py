"""Measures `extras/drafts/quotes.py`: quotations real, changed or invented.

    python -m bench.claims            the table
    python -m bench.claims --check    a part of the set; exit code 1, naming each bar that falls short

Quotations are sentences that trafilatura reads on pages of ../shared/data/pages (none
of a site that is held aside): unchanged with other white space, quotation marks and
hyphens, with a word, number or name changed, and from another page."""

import argparse
import random
import re
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Final

import trafilatura

from bench.evidence import DATA
from bench.html_lost import sources
from extras.drafts.quotes import Text, find_quote
from pipeline.document.units import split_sentences
from readers.html.document import read_document
from readers.page import Page

SMALL: Final = 60
"""Cases of a set in the quick form."""
BARS: Final = {
    "quotes: precision": 0.99,
    "quotes: recall": 0.99,
}
_NAME: Final = re.compile(r"(?<=[a-z] )[A-Z][a-z]{3,}")


def main() -> int:
    """Print the tables or check the bars; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--check", action="store_true", help="a part of each set, exit code 1 on a miss"
    )
    wanted = parser.parse_args()
    if not DATA.is_dir():
        print("skipped: ../shared/data is not beside this checkout")
        return 0
    most = SMALL if wanted.check else 1000
    measured = _quotes(most)
    missed = [
        f"{bar}: {measured[bar]:.3f} < {floor}"
        for bar, floor in BARS.items()
        if measured[bar] < floor
    ]
    for line in missed if wanted.check else []:
        print(f"SHORT {line}")
    return 1 if wanted.check and missed else 0


def _quotes(most: int) -> dict[str, float]:
    draw = random.Random(1)
    pages = _pages(draw, min(most, 100))
    names = [
        name
        for _, sentences in pages
        for one in sentences
        for name in _NAME.findall(one)
    ]
    counts: Counter[tuple[str, str]] = Counter()
    for place, (html, (plain, changed, _)) in enumerate(pages):
        text = [Text(read_document(Page("u", "u", "", html, "text/html")))]
        elsewhere = pages[(place + 7) % len(pages)][1][2]
        for kind, quote in (
            ("unchanged", _respaced(plain, draw)),
            ("changed", _changed(changed, names, draw)),
            ("invented", elsewhere),
        ):
            counts[kind, find_quote(quote, text).standing] += 1
    for kind in ("unchanged", "changed", "invented"):
        print(
            f"quotes {kind:13}",
            {standing: n for (of, standing), n in counts.items() if of == kind},
        )
    wrong = sum(
        n
        for (kind, standing), n in counts.items()
        if kind != "unchanged" and standing != "verbatim"
    )
    flagged = sum(n for (_, standing), n in counts.items() if standing != "verbatim")
    return {
        "quotes: precision": wrong / max(flagged, 1),
        "quotes: recall": wrong / (2 * len(pages)),
    }


def _pages(draw: random.Random, most: int) -> list[tuple[str, list[str]]]:
    """Return HTML with three sentences that another program reads on it, of pages that
    are not held aside."""
    found: list[tuple[str, list[str]]] = []
    for html, held in draw.sample(sorted(sources(1).values()), len(sources(1))):
        text = (
            ""
            if held
            else trafilatura.extract(html, include_tables=False, include_comments=False)
            or ""
        )
        # Paragraphs of several sentences: a line by itself may be a dialog that no one sees before
        # it opens.
        lines = [
            (line, spans)
            for line in text.splitlines()
            if len(spans := split_sentences(line)) > 1
        ]
        cut = [line[start:end].strip() for line, spans in lines for start, end in spans]
        whole = [one for one in cut if 8 <= len(one.split()) <= 40 and '"' not in one]
        if len(whole) >= 3:
            found.append((html, draw.sample(whole, 3)))
        if len(found) == most:
            break
    return found


def _respaced(text: str, draw: random.Random) -> str:
    spaced = re.sub(" ", lambda _: draw.choice([" ", "  ", "\n", "\u00a0"]), text)
    return spaced.replace("-", draw.choice(["-", "\u2011", "–"])).replace("'", "’")


def _changed(text: str, names: Sequence[str], draw: random.Random) -> str:
    numbers, own = re.findall(r"\d+", text), _NAME.findall(text)
    if numbers and draw.random() < 0.6:
        number = draw.choice(numbers)
        return text.replace(number, str(int(number) + draw.randint(1, 9)), 1)
    if own and draw.random() < 0.7:
        name = draw.choice(own)
        return text.replace(name, draw.choice([one for one in names if one != name]), 1)
    parts = text.split()
    parts[draw.randrange(1, len(parts))] = "penguin"
    return " ".join(parts)


if __name__ == "__main__":
    sys.exit(main())
