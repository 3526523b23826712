"""How close the one token counter is to models' own: its ratio to two tokenizers over
real texts, and its speed.

`python -m bench.tokens --models` compares with OpenAI's cl100k_base and o200k_base; the
package bpe-openai, which holds both tables, must be installed. Without the option only
the speed is measured. `--check` exits 1 when counting is slow or a ratio to cl100k_base
leaves its bounds."""

import argparse
import gzip
import importlib
import json
import random
import sys
import sysconfig
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Protocol

import numpy as np

from pipeline.evidence.forms import Form
from pipeline.evidence.render import Kept, Style, render
from pipeline.text.tokens import count_tokens
from readers.html.document import read_document
from readers.page import Page

ROOT: Final = Path(__file__).resolve().parents[1]
DATA: Final = ROOT.parent / "shared" / "data"
SLOWEST: Final = 0.4e6
"""Characters a second of processor time; .9 (Chinese) to 7 million were measured on two
cores under load, with no word seen before."""
NEAR: Final = 0.03


class Tokenizer(Protocol):
    """What bpe-openai's encodings do."""

    n_vocab: int

    def encode_ordinary(self, text: str) -> list[int]:
        """Return the tokens of a text."""

    def decode_single_token_bytes(self, token: int) -> bytes:
        """Return the bytes of a token."""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--models", action="store_true", help="compare with cl100k_base and o200k_base"
    )
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    known = [tokenizer("cl100k_base"), tokenizer("o200k_base")] if args.models else []
    failed = []
    print(
        f"{'texts':16}{'characters':>12}{'tokens':>10}{'M chars/s':>11}{'cl100k':>8}{'5..95 %':>12}{'o200k':>8}"
    )
    for name, texts in samples().items():
        started = time.process_time()
        counts = np.array([count_tokens(text) for text in texts])
        speed = sum(map(len, texts)) / (time.process_time() - started)
        line = f"{name:16}{sum(map(len, texts)):>12,}{counts.sum():>10,}{speed / 1e6:>11.0f}"
        if known:
            theirs = np.array(
                [[len(one.encode_ordinary(text)) for text in texts] for one in known]
            )
            ratio, other = counts.sum() / theirs.sum(axis=1)
            low, high = np.percentile(counts / theirs[0], [5, 95])
            line += f"{ratio:>8.3f}{low:>7.2f} {high:.2f}{other:>8.3f}"
            if abs(ratio - 1) > NEAR:
                failed.append(f"{name}: ratio {ratio:.3f}, not within {NEAR} of 1")
        print(line)
        if speed < SLOWEST:
            failed.append(
                f"{name}: {speed / 1e6:.0f} M characters a second < {SLOWEST / 1e6:.0f}"
            )
    for line in failed:
        print(f"BAR MISSED: {line}")
    sys.exit(1 if failed and args.check else 0)


def tokenizer(name: str) -> Tokenizer:
    """Return a model's tokenizer."""
    found: Tokenizer = importlib.import_module("bpe_openai").get_encoding(name)
    return found


def samples() -> dict[str, Sequence[str]]:
    """Return texts of each kind; of a checkout without `../shared/data`, the sample
    library."""
    if not DATA.is_dir():
        files = sorted((ROOT / "examples" / "library").glob("*.html"))
        return {"sample library": [path.read_text(encoding="utf-8") for path in files]}
    found: dict[str, Sequence[str]] = {}
    for language in ("en", "de", "ru", "zh"):
        found[f"prose {language}"] = _texts(
            DATA / "evidence" / f"xquad_{language}.texts.jsonl"
        )
    found["papers"] = [
        text[:15_000]
        for text in _texts(DATA / "longdoc" / "covidqa" / "docs.jsonl")[:30]
    ]
    pages = [
        gzip.decompress(p.read_bytes()).decode("utf-8", "replace")
        for p in sorted((DATA / "pages").glob("*.gz"))
    ]
    found["raw HTML"] = [text[20_000:35_000] for text in pages[::12]]
    found["web markdown"] = [
        _written(text, "markdown", tables=False) for text in pages[:344:6]
    ]
    found["tables"] = [
        text
        for page in pages[344::4]
        if len(text := _written(page, "markdown", tables=True)) > 500
    ]
    found["tables in HTML"] = [
        text
        for page in pages[344::4]
        if len(text := _written(page, "html", tables=True)) > 500
    ]
    modules = sorted(Path(sysconfig.get_path("stdlib")).glob("*/*.py"))[::14]
    headers = sorted(Path(np.get_include()).rglob("*.h"))
    code = [
        path.read_text(encoding="utf-8", errors="replace")[:10_000]
        for path in (*modules, *headers)
    ]
    found["code"] = [text for text in code if len(text) > 2_000]
    found["numbers"] = [_numbers(random.Random(seed)) for seed in range(20)]
    return found


def _texts(path: Path) -> list[str]:
    return [
        json.loads(line)["text"]
        for line in path.read_text(encoding="utf-8").splitlines()
    ]


def _written(html: str, form: Form, *, tables: bool) -> str:
    """Return a page, or its tables alone, as a tool writes it."""
    document = read_document(Page("u", "u", "", html, "text/html"))
    kept = [
        Kept(n)
        for n, block in enumerate(document.blocks)
        if not tables or block.kind == "row"
    ]
    return render(document, kept, Style(form))[:15_000]


def _numbers(draw: random.Random) -> str:
    """Return a table of prices, shares, dates, counts, parted in one of four ways."""
    between = draw.choice([" | ", ", ", "\t", " "])
    kinds = (
        lambda: str(draw.randrange(10_000)),
        lambda: f"{draw.uniform(-10, 1000):.2f}",
        lambda: f"{draw.randrange(1, 999)},{draw.randrange(1000):03}",
        lambda: (
            f"{draw.randrange(1900, 2027)}-{draw.randrange(1, 13):02}-{draw.randrange(1, 29):02}"
        ),
        lambda: f"{draw.uniform(0, 100):.1f}%",
        lambda: f"${draw.randrange(1, 9999)}",
        lambda: str(draw.randrange(10**6, 10**9)),
    )
    return "\n".join(
        between.join(draw.choice(kinds)() for _ in range(6)) for _ in range(60)
    )


if __name__ == "__main__":
    main()
