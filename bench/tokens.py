"""How close the one token counter is to a model's own: ratio to cl100k_base over real texts, and its speed.

`python -m bench.tokens --cl100k` needs the package tiktoken, which fetches its table or takes it from
TIKTOKEN_CACHE_DIR; without the option only the speed is measured. `--check` exits 1 when counting is slow or the ratio
leaves its bounds.
"""

import argparse
import gzip
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from pipeline.text.tokens import count_tokens

ROOT: Final = Path(__file__).resolve().parents[1]
DATA: Final = ROOT.parent / "shared" / "data"
SLOWEST: Final = 2e6
"""Characters a second; 50 to 180 million were measured on two shared cores, less on short texts and the first call."""
BOUNDS: Final = (0.75, 1.25)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cl100k", action="store_true", help="compare with cl100k_base")
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    count_model = _model_counter() if args.cl100k else None
    failed = []
    print(f"{'texts':16}{'characters':>12}{'tokens':>10}{'M chars/s':>11}{'ratio':>8}")
    for name, texts in _samples().items():
        started = time.perf_counter()
        tokens = sum(map(count_tokens, texts))
        speed = sum(map(len, texts)) / (time.perf_counter() - started)
        ratio = tokens / sum(map(count_model, texts)) if count_model else float("nan")
        print(f"{name:16}{sum(map(len, texts)):>12,}{tokens:>10,}{speed / 1e6:>11.0f}{ratio:>8.2f}")
        if speed < SLOWEST:
            failed.append(f"{name}: {speed / 1e6:.0f} M characters a second < {SLOWEST / 1e6:.0f}")
        if count_model and not BOUNDS[0] < ratio < BOUNDS[1]:
            failed.append(f"{name}: ratio {ratio:.2f} outside {BOUNDS}")
    for line in failed:
        print(f"BAR MISSED: {line}")
    sys.exit(1 if failed and args.check else 0)


def _model_counter() -> Callable[[str], int]:
    import tiktoken  # noqa: PLC0415  only this option needs it

    encoding = tiktoken.get_encoding("cl100k_base")
    return lambda text: len(encoding.encode_ordinary(text))


def _samples() -> dict[str, Sequence[str]]:
    samples: dict[str, Sequence[str]] = {}
    if not DATA.is_dir():
        files = sorted((ROOT / "examples" / "library").glob("*.html"))
        return {"sample library": [path.read_text(encoding="utf-8") for path in files]}
    pages = sorted((DATA / "pages").glob("*.html.gz"))[::12]
    raw = [gzip.decompress(path.read_bytes()).decode("utf-8", "replace") for path in pages]
    samples["raw HTML"] = [text[20_000:60_000] for text in raw]
    for language in ("en", "de", "ru", "zh"):
        samples[f"prose {language}"] = _texts(DATA / "evidence" / f"xquad_{language}.texts.jsonl")[:40]
    samples["papers"] = [text[:20_000] for text in _texts(DATA / "longdoc" / "covidqa" / "docs.jsonl")[:20]]
    return samples


def _texts(path: Path) -> list[str]:
    return [json.loads(line)["text"] for line in path.read_text(encoding="utf-8").splitlines()]


if __name__ == "__main__":
    main()
