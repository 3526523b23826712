"""Whether the page that answers is among those that are read of a site, chosen by title
and path alone.

A site of all real pages at hand, under the paths that they have on the web, listed by a
sitemap without titles or by titled links; the questions are those that people ask of 28
of them. Beside: the home page only, the first pages of the sitemap, and words without
the embedder. Not for: what is shown of the pages (`bench/answers.py`)."""

import gzip
import json
import random
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import anyio
import numpy as np

from bench.remembering import Remembering
from extras.sites import READ, Listed, wording
from models.onnx import OnnxEmbedder
from models.protocols import Embedder
from pipeline.question.question import Question
from pipeline.reading.relevance import score_texts
from readers.html.guard import parse

DATA: Final = Path(__file__).resolve().parents[2] / "shared" / "data"
LEAST: Final = 0.1
"""What ranking by paths alone must find above the first pages of the sitemap; many of
the questions name nothing that a title says, and ranking by titles and paths finds .26
where the first pages have .07."""


def pages() -> dict[str, Listed]:
    """Return each page by its name: its path on the web, or a slug of its title where
    it does not say it, and title."""
    found: dict[str, Listed] = {}
    files = {
        path.name.partition(".")[0]: path
        for folder in ("asked/pages", "pages")
        for path in (DATA / folder).iterdir()
    }
    for name, path in sorted(files.items()):
        if not path.name.endswith(".html.gz"):
            continue
        root = parse(gzip.decompress(path.read_bytes()).decode("utf-8", "replace"))
        title = root.css_first("title") if root is not None else None
        said = " ".join(title.text().split()) if title is not None else ""
        link = (
            root.css_first("link[rel=canonical], meta[property='og:url']")
            if root is not None
            else None
        )
        href = (
            (link.attributes.get("href") or link.attributes.get("content") or "")
            if link is not None
            else ""
        )
        own = urlsplit(href).path.strip("/") or "-".join(
            re.findall(r"\w+", said.lower())
        )
        found[name] = f"https://site.test/{own}", said
    return found


async def _found(
    questions: Sequence[dict[str, str]],
    listed: dict[str, Listed],
    embedder: Embedder | None,
) -> float:
    """Return the share of questions whose page is among the first `READ`."""
    names, texts = list(listed), list(map(wording, listed.values()))
    hits = []
    for one in questions:
        scores = await score_texts(texts, Question(one["question"]), embedder=embedder)
        best = np.argsort(-scores, kind="stable")[:READ].tolist()
        hits.append(one["page"] in {names[place] for place in best})
    return float(np.mean(hits))


def checked() -> tuple[int, list[str]]:
    """Print the table; return how many questions were asked, and what fell short."""
    if not DATA.is_dir():
        sys.stdout.write("sites: skipped, ../shared/data is not beside this checkout\n")
        return 0, []
    questions = [
        json.loads(line)
        for line in (DATA / "asked" / "questions.jsonl").read_text("utf-8").splitlines()
    ]
    listed = pages()
    questions = [one for one in questions if one["page"] in listed]
    order = sorted(listed)
    random.Random(1).shuffle(order)
    first = set(order[:READ])
    embedder = Remembering(OnnxEmbedder())
    bare = {name: (url, "") for name, (url, _) in listed.items()}
    naive = float(np.mean([one["page"] in first for one in questions]))
    rows = {
        "the home page": 0.0,
        "the first of the sitemap": naive,
        "paths, words": anyio.run(_found, questions, bare, None),
        "paths": anyio.run(_found, questions, bare, embedder),
        "titles and paths, words": anyio.run(_found, questions, listed, None),
        "titles and paths": anyio.run(_found, questions, listed, embedder),
    }
    sys.stdout.write(
        f"{READ} of {len(listed)} pages read, {len(questions)} questions, share whose page is "
        f"among them\n"
    )
    sys.stdout.writelines(f"  {name:<26}{share:.3f}\n" for name, share in rows.items())
    return len(questions), [f"sites: {rows['paths']:.2f} by paths"] if rows[
        "paths"
    ] < naive + LEAST else []
