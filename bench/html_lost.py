"""What reading a page loses, glues, tears, alters or adds, against what Chromium shows
of it.

    PYTHONPATH=. python -m bench.html_lost            all pages; some minutes the first time, then one
    PYTHONPATH=. python -m bench.html_lost --check    a fixed tenth of them against the bars
    PYTHONPATH=. python -m bench.html_lost --page wcxb-0002    one page in detail; none that is held aside

The reference is `innerText` with the page's scripts barred and all opened that opens by
its own markup (`html_lost.js`); nothing is asked of our own cleaning. Chromium's
answers are kept in `bench/out/lost`. Sites are parted by the CRC-32 of their host,
Wikipedia's pages by that of their name; of the half held aside only totals are printed.
Not for: main text (`bench/main_content.py`), questions (`bench/run.py`)."""

import argparse
import gzip
import hashlib
import importlib.util
import itertools
import json
import re
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from readers.html.blocks import content_blocks
from readers.html.document import read_document
from readers.page import Page

DATA: Final = Path(__file__).resolve().parents[2] / "shared" / "data" / "pages"
OUT: Final = Path(__file__).resolve().parent / "out" / "lost"
SCRIPT: Final = Path(__file__).with_suffix(".js")
CHROMIUM: Final = Path("/usr/bin/chromium")
LEAST: Final = {"words": 0.99, "rows": 0.98, "code": 0.98}
"""Mean shares of pages."""
HALF: Final = 0.5
"""A page that keeps less of its words is lost."""
EVERY: Final = 10
"""Of the pages, in the order of the CRC-32 of their names, that `--check` reads."""
FEW: Final = 20
"""Words below which a page shows nothing of which a share could be reported."""

_TOKEN: Final = re.compile(
    r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]|\d+(?:[.,]\d+)+(?![^\W_])"
    r"|(?:(?![\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af])[^\W_])+"
)
"""A number with its points, a word, a Chinese, Japanese or Korean character."""
_SOFT: Final = "\ue000"
"""Mark of an element's end within a word, so that the word may be read as one or as
two."""
_UNDRAWN: Final = re.compile(
    "[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\U000e0000-\U000e01ef]"
)
_LONGEST: Final = 6
"""Words that may have become one, or the other way round."""
_REASONS: Final = (
    "faded", "aria-hidden", "dialog", "for screen readers", "opened", "option", "button", "legend", "svg", "math",
    "pre", "sup", "sub", "label", "custom element", "details", "summary",
)  # fmt: skip
"""What `html_lost.js` says of an element, the likeliest reason for a loss first."""


@dataclass(slots=True)
class Counts:
    """What was found on one page, or on several."""

    words: int = 0
    kept: int = 0
    glued: int = 0
    torn: int = 0
    altered: int = 0
    """Numbers that read otherwise between the same neighbours, or were glued or
    torn."""
    invented: int = 0
    rows: int = 0
    rows_kept: int = 0
    lines: int = 0
    lines_kept: int = 0
    causes: Counter[str] = field(default_factory=Counter)
    """Words lost, by reason."""
    sources: Counter[str] = field(default_factory=Counter)
    """Words that Chromium does not show, by where they are."""
    shown: dict[str, list[str]] = field(default_factory=dict)
    """Examples by finding."""

    def note(self, finding: str, example: str) -> None:
        """Keep an example of a finding."""
        self.shown.setdefault(finding, []).append(" ".join(example.split())[:160])


def is_held(name: str, host: str) -> bool:
    """Whether a page's site is held aside."""
    key = name if name.startswith("wiki-") else host.removeprefix("www.")
    return zlib.crc32(key.encode()) % 2 == 1


def words_of(text: str) -> list[str]:
    """Return the words of a text in small letters, since a sheet may draw them in
    capitals."""
    return _TOKEN.findall(_UNDRAWN.sub("", text).casefold())


def compare(seen: dict[str, Any], ours: str) -> Counts:
    """Return what became of a page that Chromium shows as `seen`."""
    counts = Counts()
    text = seen["text"]
    wanted, got = words_of(text), words_of(ours)
    soft = _soft_words(text.casefold())
    lost, new = Counter(wanted) - Counter(got), Counter(got) - Counter(wanted)
    counts.words = len(wanted)
    for whole, parts, is_soft in _joined(wanted, got, lost, new, soft):
        _settle(counts, "glued", whole, parts, is_soft=is_soft)
    unbroken = {word for text, _ in seen["pieces"] for word in words_of(text)}
    for whole, parts, _ in _joined(got, wanted, new, lost, set()):
        _settle(counts, "torn", whole, parts, is_soft=whole not in unbroken)
    _count_altered(counts, wanted, got, lost, new)
    counts.kept = counts.words - lost.total()
    _find_sources(counts, seen, new)
    _find_causes(counts, seen["pieces"], lost, got)
    _count_rows(counts, seen["rows"], ours)
    _count_lines(counts, seen["listings"], ours)
    return counts


def _soft_words(text: str) -> set[str]:
    """Return the words that elements end within, read as one."""
    found = re.findall(rf"[^\W_]*(?:{_SOFT}+[^\W_]*)+", text)
    return {part for whole in found for part in (whole.replace(_SOFT, ""),) if part}


def _joined(
    words: Sequence[str],
    others: Sequence[str],
    gone: Counter[str],
    made: Counter[str],
    soft: set[str],
) -> Iterator[tuple[str, list[str], bool]]:
    """Yield what neighbours in `words` that are in `gone` make one word in `made`, and
    take both out of them.

    The one word must be in `others` beside a word that is next to the parts in `words`,
    more often than it does in `words`: two badges of a person are not the day of a date
    that is elsewhere, beside the same word."""
    beside = _beside(others, made)
    beside.subtract(_beside(words, made))
    for start in range(len(words)):
        if not gone[words[start]]:
            continue
        whole = words[start]
        for end in range(start + 1, min(start + _LONGEST, len(words))):
            if not gone[words[end]]:
                break
            whole += words[end]
            if made[whole] > 0:
                parts = list(words[start : end + 1])
                around = (
                    (-1, words[start - 1]) if start else (0, ""),
                    (1, words[end + 1]) if end + 1 < len(words) else (0, ""),
                )
                if len(others) > 1 and not any(
                    beside[whole, *side] > 0 for side in around
                ):
                    continue
                if any(gone[part] < count for part, count in Counter(parts).items()):
                    break
                made[whole] -= 1
                gone.subtract(parts)
                yield whole, parts, whole in soft
                break
    for counter in (gone, made):
        for word in [word for word, count in counter.items() if count <= 0]:
            del counter[word]


def _beside(
    words: Sequence[str], wanted: Counter[str]
) -> Counter[tuple[str, int, str]]:
    """Return how often each wanted word precedes (1) or after (-1) each other word."""
    return Counter(
        (word, side, words[at + side])
        for at, word in enumerate(words)
        if wanted[word]
        for side in (-1, 1)
        if 0 <= at + side < len(words)
    )


def _settle(
    counts: Counts, finding: str, whole: str, parts: list[str], *, is_soft: bool
) -> None:
    """Count words that were glued or torn, unless an element ends between them."""
    if is_soft:
        return
    if finding == "glued":
        counts.glued += 1
    else:
        counts.torn += 1
    counts.note(finding, f"{' '.join(parts)} | {whole}")
    if any(part[0].isdigit() for part in parts):
        counts.altered += any(
            part[-1].isdigit() and other[0].isdigit()
            for part, other in itertools.pairwise(parts)
        )


def _find_sources(counts: Counts, seen: dict[str, Any], new: Counter[str]) -> None:
    """Report words that Chromium does not show by where they are on the page."""
    for source, text in (
        ("image or label", seen["alts"]), ("closed", seen["shut"]), ("unseen", seen["unseen"]),
        ("not drawn", seen["whole"]),
    ):  # fmt: skip
        there = new & Counter(words_of(text))
        counts.sources[source] += there.total()
        new -= there
    counts.invented = new.total()
    for word in new.elements():
        counts.note("invented", word)


def _count_altered(
    counts: Counts,
    wanted: list[str],
    got: list[str],
    lost: Counter[str],
    new: Counter[str],
) -> None:
    """Count numbers that are otherwise between the same two words on each side, which
    do so but once."""
    contexts = Counter(
        (*wanted[i - 2 : i], *wanted[i + 1 : i + 3]) for i in range(2, len(wanted) - 2)
    )
    between = {
        (*got[i - 2 : i], *got[i + 1 : i + 3]): got[i]
        for i in range(2, len(got) - 2)
        if new[got[i]] and any(map(str.isdigit, got[i]))
    }
    for i in range(2, len(wanted) - 2):
        number = wanted[i]
        if lost[number] and any(map(str.isdigit, number)):
            context = (*wanted[i - 2 : i], *wanted[i + 1 : i + 3])
            other = between.get(context)
            if other is not None and contexts[context] == 1:
                counts.altered += 1
                counts.note(
                    "altered", f"{wanted[i - 1]} {number} {wanted[i + 1]} | {other}"
                )


def _find_causes(
    counts: Counts, pieces: list[list[str]], lost: Counter[str], got: list[str]
) -> None:
    """Give each lost word the reason of a piece that is not kept as a whole; pieces
    lost in whole come first."""
    runs = {tuple(got[i : i + 2]) for i in range(len(got))} | {(word,) for word in got}
    left = Counter(lost)
    weighed: list[tuple[float, list[str], str, str]] = []
    for text, said in pieces:
        words = words_of(text.replace(_SOFT, ""))
        missing = [word for word in words if left[word]]
        if missing:
            pairs: list[tuple[str, ...]] = [*itertools.pairwise(words)] or [(words[0],)]
            kept = sum(pair in runs for pair in pairs) / len(pairs)
            weighed.append((kept, missing, said, text))
    for kept, missing, said, text in sorted(weighed, key=lambda item: item[0]):
        taken = [word for word in missing if left[word] > 0]
        if not taken:
            continue
        left.subtract(taken)
        reasons = set(said.split(","))
        reason = next((name for name in _REASONS if name in reasons), "text")
        reason = reason if kept < HALF else f"{reason}, in part"
        counts.causes[reason] += len(taken)
        counts.note(reason, text)
    counts.causes["elsewhere"] += sum(count for count in left.values() if count > 0)


def _count_rows(counts: Counts, tables: list[dict[str, Any]], ours: str) -> None:
    """Count rows of tables whose cells are in their order on one line."""
    lines = [_folded(line) for line in ours.split("\n")]
    every = "\n".join(f" {line} " for line in lines)
    for table in tables:
        if table["layout"] or table["code"]:
            continue
        for row in table["rows"]:
            cells = [folded for cell in row if (folded := _folded(cell))]
            if len(cells) < 2:
                continue
            counts.rows += 1
            if re.search("[^\n]*? ".join(map(re.escape, cells)), every) or _joined_row(
                cells, lines
            ):
                counts.rows_kept += 1
            else:
                counts.note("row", " | ".join(row))


def _joined_row(cells: list[str], lines: list[str]) -> bool:
    """Whether cells are on a line in their order, however they are parted into
    words."""
    packed = [cell.replace(" ", "") for cell in cells]
    for line in lines:
        position, whole = 0, line.replace(" ", "")
        for cell in packed:
            position = whole.find(cell, position)
            if position < 0:
                break
            position += len(cell)
        else:
            return True
    return False


def _folded(text: str) -> str:
    return " ".join(words_of(text.replace(_SOFT, "")))


def _count_lines(counts: Counts, listings: list[dict[str, Any]], ours: str) -> None:
    """Count lines of listings that are there to the letter."""
    have = {line.rstrip() for line in ours.split("\n")}
    for listing in listings:
        for line in listing["text"].replace(_SOFT, "").replace("\xa0", " ").split("\n"):
            if not words_of(line):
                continue
            counts.lines += 1
            if line.rstrip() in have or line.rstrip() in {
                other.replace("\xa0", " ") for other in have if "\xa0" in other
            }:
                counts.lines_kept += 1
            else:
                counts.note("line", line.replace(" ", "·"))


def see(pages: dict[str, str]) -> dict[str, dict[str, Any]]:
    """Return what Chromium shows of pages, by name; its earlier answers are taken from
    `OUT`."""
    script = SCRIPT.read_text("utf-8")
    keys = {
        name: hashlib.sha256((script + html).encode("utf-8", "replace")).hexdigest()[
            :24
        ]
        for name, html in pages.items()
    }
    OUT.mkdir(parents=True, exist_ok=True)
    missing = [name for name, key in keys.items() if not (OUT / f"{key}.json").exists()]
    if missing:
        for name, seen in _looked_at({name: pages[name] for name in missing}, script):
            (OUT / f"{keys[name]}.json").write_text(json.dumps(seen), "utf-8")
    return {
        name: json.loads((OUT / f"{key}.json").read_text("utf-8"))
        for name, key in keys.items()
    }


def _looked_at(
    pages: dict[str, str], script: str
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Open pages in Chromium, without a network; their scripts are barred by a policy,
    so `noscript` stays shut."""
    from playwright.sync_api import Error, Route, sync_playwright  # noqa: PLC0415  only where Chromium is asked

    address = "http://page.test/"
    policy = {
        "content-type": "text/html; charset=utf-8",
        "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'",
    }
    current = ""

    def answer(route: Route) -> None:
        if route.request.url == address:
            route.fulfill(status=200, headers=policy, body=current)
        else:
            route.abort()

    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=CHROMIUM,
            chromium_sandbox=False,
            args=["--host-resolver-rules=MAP * ~NOTFOUND"],
        )
        context = browser.new_context(
            viewport={"width": 1280, "height": 900}, service_workers="block"
        )
        context.route("**/*", answer)
        for name, html in pages.items():
            current = html
            page = context.new_page()
            try:
                page.goto(address, wait_until="domcontentloaded")
                yield name, page.evaluate(script)
            except Error as error:
                print(f"{name}: Chromium says {str(error).splitlines()[0]}")
                yield (
                    name,
                    {
                        "text": "",
                        "pieces": [],
                        "unseen": "",
                        "shut": "",
                        "alts": "",
                        "whole": "",
                        "rows": [],
                        "listings": [],
                    },
                )
            page.close()
        browser.close()


def read(html: str) -> str:
    """Return what a page shows as every later step reads it, without what it says of
    itself beside its text."""
    return content_blocks(read_document(Page("u", "u", "", html, "text/html")).root)[0]


def sources(every: int) -> dict[str, tuple[str, bool]]:
    """Return HTML and whether it is held aside of every n-th page."""
    hosts: dict[str, str] = {}
    for line in (DATA / "wcxb.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        hosts[row["page"]] = urlsplit(row["url"]).hostname or ""
    names = sorted(
        (path.name.removesuffix(".html.gz") for path in DATA.glob("*.html.gz")),
        key=lambda n: zlib.crc32(n.encode()),
    )
    found: dict[str, tuple[str, bool]] = {}
    for name in sorted(names[::every]):
        html = gzip.decompress((DATA / f"{name}.html.gz").read_bytes()).decode(
            "utf-8", "replace"
        )
        found[name] = html, is_held(name, hosts.get(name, ""))
    return found


def print_half(table: dict[str, Counts], title: str, *, details: bool) -> list[str]:
    """Print the totals of pages, with reasons and the worst pages where `details`;
    return what falls short."""
    pages = {name: counts for name, counts in table.items() if counts.words >= FEW}
    shares: dict[str, Callable[[Counts], tuple[int, int]]] = {
        "words": lambda c: (c.kept, c.words),
        "rows": lambda c: (c.rows_kept, c.rows),
        "code": lambda c: (c.lines_kept, c.lines),
    }
    print(f"{title}: {len(pages)} pages that show words")
    short: list[str] = []
    for key, share in shares.items():
        pairs = {
            name: pair for name, counts in pages.items() if (pair := share(counts))[1]
        }
        mean = sum(part / whole for part, whole in pairs.values()) / max(1, len(pairs))
        part, whole = (sum(pair[i] for pair in pairs.values()) for i in (0, 1))
        print(
            f"  {key:6} kept {mean:.4f} mean of {len(pairs)} pages, {part / max(1, whole):.4f} of "
            f"{whole:,}"
        )
        if pairs and mean < LEAST[key]:
            short.append(f"{title}: {key} {mean:.4f}, not {LEAST[key]}")
        if details:
            worst = sorted(pairs.items(), key=lambda item: item[1][0] / item[1][1])[:10]
            print(
                "         worst "
                + ", ".join(f"{name} {a / b:.2f} of {b}" for name, (a, b) in worst)
            )
    gone = [name for name, counts in pages.items() if counts.kept < HALF * counts.words]
    sums = {
        key: sum(getattr(counts, key) for counts in pages.values())
        for key in ("glued", "torn", "altered", "invented")
    }
    print(
        f"  {', '.join(f'{key} {value:,}' for key, value in sums.items())}; pages under half: "
        f"{len(gone)}"
    )
    if gone:
        short.append(f"{title}: {len(gone)} pages keep under half of their words")
    if sums["altered"]:
        short.append(f"{title}: {sums['altered']} numbers altered")
    if details:
        print(
            "  lost by reason: "
            + ", ".join(
                f"{name} {count:,}"
                for name, count in sum(
                    (c.causes for c in pages.values()), Counter()
                ).most_common()
            )
        )
        print(
            "  read beyond what is shown: "
            + ", ".join(
                f"{name} {count:,}"
                for name, count in sum(
                    (c.sources for c in pages.values()), Counter()
                ).most_common()
            )
        )
        for key in ("glued", "torn", "altered", "invented"):
            worst_pages = sorted(
                pages.items(), key=lambda item: -getattr(item[1], key)
            )[:8]
            print(
                f"  {key:8} most on "
                + ", ".join(
                    f"{name} {getattr(counts, key)}" for name, counts in worst_pages
                )
            )
    return short


def print_small() -> list[str]:
    """Hold what tests expect of small pages against Chromium's letters and digits;
    return where they differ."""
    from tests.support.today import APART, PAGES  # noqa: PLC0415  what tests need, pages do not

    seen = see({name: html for name, (html, _) in PAGES.items()})
    short: list[str] = []
    for name, (_, text) in PAGES.items():
        shown, expected = (
            "".join(filter(str.isalnum, source))
            for source in (seen[name]["text"], text)
        )
        if shown != expected and name not in APART:
            short.append(
                f"small page {name!r}: Chromium shows {shown!r}, expected is {expected!r}"
            )
    print(
        f"small pages of today: {len(PAGES)}, of which {len(short)} differ from Chromium's text"
    )
    return short


def main() -> int:
    """Run."""
    parser = argparse.ArgumentParser(
        description="What reading a page loses, against what Chromium shows."
    )
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--page", help="one page in detail")
    given = parser.parse_args()
    if not DATA.is_dir():
        print("not measured: ../shared/data is not beside this checkout")
        return 0
    if not CHROMIUM.exists() or importlib.util.find_spec("playwright") is None:
        print(f"not measured: needs {CHROMIUM} and the extra `browser`")
        return 0
    chosen = sources(EVERY if given.check else 1)
    if given.page:
        chosen = {
            name: pair
            for name, pair in chosen.items()
            if name == given.page and not pair[1]
        }
    seen = see({name: html for name, (html, _) in chosen.items()})
    table = {
        name: compare(seen[name], read(html)) for name, (html, _) in chosen.items()
    }
    if given.page:
        for name, counts in table.items():
            print(
                name,
                {
                    k: getattr(counts, k)
                    for k in (
                        "words",
                        "kept",
                        "glued",
                        "torn",
                        "altered",
                        "invented",
                        "rows",
                        "rows_kept",
                        "lines",
                        "lines_kept",
                    )
                },
            )
            for finding, examples in counts.shown.items():
                print(f"  {finding} ({len(examples)})", *examples[:25], sep="\n      ")
        return 0
    tuned = {name: counts for name, counts in table.items() if not chosen[name][1]}
    held = {name: counts for name, counts in table.items() if chosen[name][1]}
    short = print_small()
    short += print_half(tuned, "tuned on", details=True) + print_half(
        held, "held aside", details=False
    )
    for line in short:
        print(f"SHORT {line}")
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main())
