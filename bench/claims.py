"""Measures `extras/drafts/`: quotations real, changed or invented; statements
supported, altered or not.

    python -m bench.claims            all tables
    python -m bench.claims --check    a part of each set; exit code 1, naming each bar that falls short

Quotations are sentences that trafilatura reads on pages of ../shared/data/pages (none
of a site that is held aside): unchanged with other white space, quotation marks and
hyphens, with a word, number or name changed, and from another page. Statements are
WiCE's dev claims (people's labels) and pairs made of the answers to dev questions of
../shared/data/train: unchanged, and with a number, name, role or negation changed. Rows
are those of tables on such pages (`bench/asked/rows.jsonl`), with what they say, with
another number, and taken out of the page. The naive way takes the sentence that BM25
ranks first. It calls a claim supported by that sentence's share of the claim's words,
at the bound that is best for it on the same data."""

import argparse
import gzip
import json
import random
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import anyio
import numpy as np
import trafilatura

from bench.evidence import DATA
from bench.html_lost import sources
from extras.drafts.quotes import Text, find_quote
from models.onnx import OnnxEmbedder, OnnxReader
from pipeline.document.page import Page
from pipeline.document.units import split_sentences, tag_sentences
from pipeline.html.document import read_document
from pipeline.question.question import Question
from pipeline.reading.bm25 import BM25, PageUnits, page_units
from pipeline.reading.relevance import Blend, Reread
from pipeline.reading.statements import Supported, judge_statement
from pipeline.text.words import find_entities, index_terms
from train.reader.data import load_public

SMALL: Final = 60
"""Cases of a set in the quick form."""
AROUND: Final = 25
"""Sentences on either side of an answer that a made statement is judged against."""
ROOT: Final = Path(__file__).resolve().parents[1]
BARS: Final = {
    "quotes: precision": 0.99,
    "quotes: recall": 0.99,
    "made: balanced accuracy": 0.8,
    "rows: contradicted": 0.8,
    "wice: balanced accuracy": 0.65,
    "wice: F1 above BM25": 0.05,
}
_NUMBER: Final = re.compile(r"\d[\d,.]*\d|\d")
_NAME: Final = re.compile(r"(?<=[a-z] )[A-Z][a-z]{3,}")
_VERB: Final = re.compile(
    r"\b(is|was|are|were|has|have|had|can|could|will|would|did|does)\b(?! not)"
)


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement with the sentences that it is judged against."""

    text: str
    units: list[str]
    supported: bool
    kind: str
    evidence: list[list[int]]
    """Sets of sentences, each of which is what people call its evidence."""


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
    measured = _quotes(most) | anyio.run(_statements, most)
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


async def _statements(most: int) -> dict[str, float]:
    reader = Reread(Blend(OnnxEmbedder()), OnnxReader())
    measured: dict[str, float] = {}
    for name, claims in (
        ("made", list(_made(most // 2))),
        ("rows", list(_rows())),
        ("wice", _wice(most)),
    ):
        judged: list[Supported] = []
        naive: list[float] = []
        first: list[list[int]] = []
        for claim in claims:
            relevance = await reader.read(
                Question(claim.text),
                [PageUnits(claim.units, [""] * len(claim.units), "en")],
            )
            judged.append(judge_statement(Question(claim.text), claim.units, relevance))
            order = np.argsort(
                -BM25(claim.units, language="en").scores(Question(claim.text)),
                kind="stable",
            ).tolist()
            first.append(order[:2])
            asked = set(index_terms(claim.text, language="en"))
            naive.append(
                len(asked & set(index_terms(claim.units[order[0]], language="en")))
                / max(len(asked), 1)
            )
        truth = [claim.supported for claim in claims]
        ours = _balanced(truth, [one.support == "supported" for one in judged])
        best = max(
            _balanced(truth, [share >= bound for share in naive])
            for bound in np.linspace(0.05, 1, 20)
        )
        print(
            f"{name}: {len(claims)} claims, balanced accuracy {ours:.3f}, naive at its best "
            f"{best:.3f}"
        )
        kinds = Counter(
            (claim.kind, one.support) for claim, one in zip(claims, judged, strict=True)
        )
        for (kind, support), count in sorted(kinds.items()):
            print(f"    {kind:20}{support:14}{count}")
        measured[f"{name}: balanced accuracy"] = ours
        if name == "rows":
            otherwise = [claim.kind == "row: number" for claim in claims]
            said = _balanced(
                otherwise, [one.support == "contradicted" for one in judged]
            )
            print(f"    contradicted by a row or not, balanced accuracy {said:.3f}")
            measured["rows: contradicted"] = said
        if name == "wice":
            known = [place for place, claim in enumerate(claims) if any(claim.evidence)]
            by_us = float(
                np.mean(
                    [_f1(judged[place].rows, claims[place].evidence) for place in known]
                )
            )
            by_words = float(
                np.mean([_f1(first[place], claims[place].evidence) for place in known])
            )
            print(
                f"    evidence F1 of {len(known)}: {by_us:.3f}, two best by BM25 {by_words:.3f}"
            )
            measured["wice: F1 above BM25"] = by_us - by_words
    return measured


def _wice(most: int) -> list[Claim]:
    with gzip.open(
        DATA / "claims" / "wice_dev.jsonl.gz", "rt", encoding="utf-8"
    ) as lines:
        rows = [json.loads(line) for line in lines]
    rows = rows[:: max(1, len(rows) // most)]
    return [
        Claim(
            row["claim"],
            row["evidence"],
            row["label"] == "supported",
            row["label"],
            row["supporting"],
        )
        for row in rows
    ]


def _made(most: int) -> Iterator[Claim]:
    """Yield sentences that answer a question, each unchanged and altered in one of four
    ways in turn."""
    draw = random.Random(5)
    corpus = load_public("dev")
    questions = [one for one in corpus.questions if len(one.gold) == 1]
    draw.shuffle(questions)
    seen: set[str] = set()
    for question in questions:
        sentences = corpus.texts[question.text].sentences
        place = min(question.gold)
        text = sentences[place]
        if text in seen or not 8 <= len(text.split()) <= 40 or "|" in text:
            continue
        if len(seen) >= min(most, 160):
            return
        ways = _altered(text, list(sentences), draw)
        if ways:
            kind = ("number", "name", "role", "negation")[len(seen) % 4]
            kind = kind if kind in ways else draw.choice(sorted(ways))
            units = list(sentences[max(0, place - AROUND) : place + AROUND])
            yield Claim(text, units, True, "unchanged", [])
            yield Claim(ways[kind], units, False, kind, [])
            seen.add(text)


def _rows() -> Iterator[Claim]:
    """Yield statements about a row of a page's table: what it says, another number,
    another where the row is left out.

    The last is what no source mentions: to call it contradicted by another row of the
    same unit is a mistake."""
    pages = {name: html for name, (html, held) in sources(1).items() if not held}
    for line in (
        (ROOT / "bench" / "asked" / "rows.jsonl")
        .read_text(encoding="utf-8")
        .splitlines()
    ):
        row = json.loads(line)
        document = read_document(Page("u", "u", "", pages[row["page"]], "text/html"))
        units = page_units(document, tag_sentences(document)).texts
        yield Claim(row["true"], list(units), True, "row: unchanged", [])
        yield Claim(row["false"], list(units), False, "row: number", [])
        yield Claim(
            row["false"],
            [one for one in units if not one.startswith(row["row"])],
            False,
            "row: left out",
            [],
        )


def _altered(
    text: str, sentences: Sequence[str], draw: random.Random
) -> dict[str, str]:
    found: dict[str, str] = {}
    if numbers := _NUMBER.findall(text):
        number = draw.choice(numbers)
        digits = re.sub(r"\D", "", number)
        found["number"] = text.replace(
            number, str(int(digits) + draw.choice([1, 2, 3, 7, 10])), 1
        )
    names = list(find_entities(text, language="en"))
    near = draw.sample(sentences, min(30, len(sentences)))
    others = [
        name
        for one in near
        for name in find_entities(one, language="en")
        if not set(name.split()) & set(text.split())
    ]
    if names and others:
        found["name"] = text.replace(draw.choice(names), draw.choice(others), 1)
    if len(names) > 1:
        one, other = draw.sample(names, 2)
        if one not in other and other not in one:
            found["role"] = (
                text.replace(one, "\0").replace(other, one).replace("\0", other)
            )
    if verb := _VERB.search(text):
        found["negation"] = f"{text[: verb.end()]} not{text[verb.end() :]}"
    return found


def _balanced(truth: Sequence[bool], said: Sequence[bool]) -> float:
    shares = [
        np.mean(
            [
                one == wanted
                for one, label in zip(said, truth, strict=True)
                if label == wanted
            ]
        )
        for wanted in (True, False)
    ]
    return float(np.mean(shares))


def _f1(rows: Sequence[int], golds: Sequence[Sequence[int]]) -> float:
    return max(
        2 * len(set(rows) & set(gold)) / (len(rows) + len(gold))
        for gold in golds
        if gold
    )


if __name__ == "__main__":
    sys.exit(main())
