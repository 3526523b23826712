"""Small inputs that failed in the field (../shared/data/field): which are read rightly
now.

    python -m bench.field                 each case with its outcome
    python -m bench.field --only docx,pdf cases whose id begins so
    python -m bench.field --misses        and what was answered where it is wrong
    python -m bench.field --check         exit code 1 where a case is wrong
    python -m bench.field --set bugs      those of ../shared/data/field2 that are files

A case is `right` where the answer has what a reader of the file would say. It is `said`
where a refusal or a note names exactly what is missing, else `wrong` with a type:
refused (an error that does not name it), lost (words that are not there), false (words
that are there and must not be), verdict (`none` over what was not read). Files and
calls are those of `index.jsonl`; what is wanted is here, as patterns. Not for: how much
of a large set is kept."""

import argparse
import json
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import anyio
from mcp import Client
from mcp_types import TextContent

from bench.field2_files import HIDDEN, SAID, SETS, SHOWN, file_cases
from bench.field_site import PASSWORD, USER, field_site
from errors import WinnowError
from server.app import build_server
from server.settings import read_settings

DATA: Final = Path(__file__).resolve().parents[2] / "shared" / "data" / "field"
TOKENS: Final = 4000
"""Of a call that names no budget: every file here is shorter."""
_NONE: Final = re.compile(r"^None: ", re.MULTILINE)
"""How an answer with that verdict begins."""

Type = Literal["right", "said", "refused", "lost", "false", "verdict"]


class Wanted(NamedTuple):
    """What a right answer has, as patterns over the answer with its blanks folded."""

    shows: Sequence[str] = ()
    hides: Sequence[str] = ()
    says: str = ""
    """A refusal or note that names what is missing is right, too."""


class Outcome(NamedTuple):
    """How a case came out."""

    type: Type
    detail: str = ""

    @property
    def is_right(self) -> bool:
        """Whether the bar counts it."""
        return self.type in ("right", "said")


_DATA_PAGE: Final = Wanted(
    (r"upper lock closes on 3 August", r"keeper calls each boat by radio")
)
_REFRESHED: Final = Wanted((r"K-landing|://127\.0\.0\.1:\d+/landing",))
WANTED: Final[Mapping[str, Wanted]] = {
    "docx-ruby": Wanted((r"東京.{0,14}の港は広い",)),
    "docx-textbox-choice": Wanted(
        (r"Warning: the mole is closed above wind force nine",)
    ),
    "docx-textbox-nofallback": Wanted(
        (r"Warning: the mole is closed above wind force nine",)
    ),
    "docx-altchunk": Wanted(
        (r"High water at the lock gate stood at 4\.62 metres on 9 May",)
    ),
    "docx-header": Wanted((r"[Rr]evision D\b",), says=r"\d (page )?headers?"),
    "docx-clauses": Wanted(
        (
            r"2\.2\W+Late sums",
            r"3\.1\W+Either side",
            r"1\.1\W+In this contract",
            r"# 2\.? Payment",
        ),
        hides=(r"\b1\. Late sums",),
    ),
    "docx-rules-start": Wanted((r"\b7[.:]? No fires", r"\b8[.:]? No nets")),
    "docx-headstyle": Wanted((r"# Pumps of the yard", r"# Valves of the yard")),
    "docx-document2": Wanted((r"44 drums of tar",)),
    "xlsx-workbook2": Wanted((r"Arn \| 100 \| 104 \| 110",)),
    "xlsx-merged-where": Wanted((r"Mossund \| Cod \| 33",)),
    "xlsx-merged-sum": Wanted(
        (r"Arnvik \| 346", r"Mossund \| 153"), hides=(r"\| 210\b", r"\| 169\b")
    ),
    "xlsx-merged-count": Wanted((r"Outer",), hides=(r"= 1\b",)),
    "xlsx-merged-header": Wanted((r"Night rate[ ,:/–-]+Winter",)),
    "xlsx-formats": Wanted(
        (
            r"\b00501\b",
            r"\b01234\b",
            r"1[,.]?234[.,]50 ?€|€ ?1,234\.50",
            r"USD 99|99.{0,3} USD",
            r"0[.,]50? kg",
        )
    ),
    "xlsx-formula": Wanted((r"=SUM\(B2:B3\)",), says=r"1 formula"),
    "xlsx-onlyformula": Wanted(
        (r"=\w+\(",), says=r"\d formulas?|formulas? (was|were) never computed"
    ),
    "xlsx-hidden": Wanted(
        (r"\b1,?300\b",),
        hides=(r"\b2,?150\b",),
        says=r"hidden rows?|hidden.{0,40}rows?",
    ),
    "xlsx-cellnote": Wanted(
        (r"Expire in August 2027",), says=r"1 (cell )?(comment|note)"
    ),
    "pptx-order": Wanted((r"Step 1.*Step 2.*Step 3",)),
    "html-ol-start": Wanted((r"4\. No boat leaves after dark", r"5\. Ice is reported")),
    "html-ol-value": Wanted(
        (
            r"3\. Bronze",
            r"2\. Silver",
            r"10\. Rule ten",
            r"I\. First act",
            r"II\. Second act",
            r"\ba\. sub a",
        )
    ),
    "html-dl-params": Wanted(
        (r"Parameters.*level – metres.*Returns\W+True when done.*Raises.*GateError",),
    ),
    "html-iframe": Wanted((r"tariff-inner\.html",)),
    "html-srcdoc": Wanted((r"The bridge lifts at 07:15", r"Depth 9 m")),
    "http-base": Wanted(
        (r"/other/files/plan\.pdf",), hides=(r"/base/files|\d/files/plan",)
    ),
    **dict.fromkeys(
        ("spa-inertia", "spa-nuxt2", "spa-astro", "spa-rrstream", "spa-discourse"),
        _DATA_PAGE,
    ),
    "html-accordion": Wanted((r"Ilse Marin opens it at six",)),
    "html-opacity": Wanted((r"fee is 31 crowns a night",)),
    "html-ticks": Wanted(
        (
            r"Crane \| ✗ \| ✓",
            r"Water \| ✓ \| ✓",
            r"Power \| ✓? ?\| ✓",
            r"Light \| (✗|not included)",
        )
    ),
    "pdf-reportlab-table": Wanted(
        (r"South 1 \| 11\.3 \|",), hides=(r"North 1 \|", r"North 2")
    ),
    "pdf-reportlab-columns": Wanted(
        (r"northern basin was dug in 1871", r"southern basin is newer and was opened")
    ),
    "pdf-reportlab-chars": Wanted((r"Every char is drawn alone, at 6\.50 m",)),
    "pdf-spanned": Wanted((r"North \| May \| 145", r"South \| April \| 99")),
    "pdf-powers": Wanted((r"10\^6|10⁶",), hides=(r"\b106 litres",)),
    "pdf-footmark": Wanted(
        (r"10\^5|10⁵", r"40 crowns ?(\[12\]|\^12|¹²)"),
        hides=(r"\b105 units", r"crowns12"),
    ),
    "epub-noteref": Wanted(
        (r"88 kg ?\[1\]", r"40 m(\^2|²|\[2\])?\b(?!2)"), hides=(r"kg1\b", r"\bm2\b")
    ),
    "pdf-form": Wanted((r"Marigold of Tarn",)),
    "pdf-annots": Wanted((r"since May.{0,20}closed at 21:00",), says=r"\d comments?"),
    "pdf-bom": Wanted((r"South one \| 11\.3 \| 410",)),
    "pdf-mime-head": Wanted((r"Dredging takes place in June",), hides=(r"\bendobj\b",)),
    "pdf-oddeven": Wanted(
        (r"speaks of rope and tar",), hides=(r"CHAPTER TWO.*CHAPTER TWO",)
    ),
    "pdf-headfirst": Wanted(
        (r"would have to be rebuilt within five years",), hides=(r"Page 2 of 4",)
    ),
    "pdf-fakebold": Wanted(
        (r"Mooring fee 55 crowns",), hides=(r"Mooring fee 55 crowns.{0,3}Mooring fee",)
    ),
    "http-cookiewall": Wanted((r"K-cookie",)),
    "http-ckchain": Wanted((r"K-cookie",)),
    "http-metarefresh": _REFRESHED,
    "http-metarefresh-js": _REFRESHED,
    "http-xhtml": Wanted((r"K-xhtml",)),
    "http-chunkcut": Wanted((r"K-cut",)),
    "http-drip": Wanted((r"K-drip",)),
    "http-challenge200": Wanted(says=r"(?i)bot check|behind a check"),
    "http-fragment": Wanted((r"Section 9: basin 9", r"dredged in week 19")),
    "folder-noext": Wanted((r"31 crowns",), says=r"[Nn]ot searched.*README"),
    "txt-nul": Wanted((r"Line one of the log.*level 4\.62.*Line three of the log",)),
    "csv-nul": Wanted((r"Tern \| 12", r"Gull \| 19")),
    "http-csv-msexcel": Wanted((r"Tern \| 12", r"Gull \| 19")),
    "epub-linear": Wanted((r"Answer to riddle 7 is the tide",)),
    "eml-calendar": Wanted((r"Shed 3", r"12 May 2026|2026-05-12|20260512", r"09:00")),
    "searxng-auth": Wanted((r"example\.org/arnvik",)),
}


def case_files(folder: Path) -> dict[str, str]:
    """Copy the cases' files, build the folder of `folder-noext`, and return each case's
    source by id."""
    shutil.copytree(DATA / "files", folder / "files")
    lock = folder / "lock"
    lock.mkdir()
    (lock / "README").write_bytes((DATA / "files" / "noext_dir_README").read_bytes())
    (lock / "CHANGES").write_text("The gate was painted in April.\n", "utf-8")
    (lock / "gate.properties").write_text(
        "gate.width=9.5\ngate.colour=green\n", "utf-8"
    )
    (lock / "plan.ics").write_text("BEGIN:VCALENDAR\nEND:VCALENDAR\n", "utf-8")
    (lock / "other.txt").write_text(
        "The lock of Mossund has no fee for rowing boats.\n", "utf-8"
    )
    return {"folder-noext": str(lock)}


def judge(wanted: Wanted, text: str, *, is_error: bool) -> Outcome:
    """Return how an answer compares with what is wanted."""
    flat = " ".join(text.split())
    # The file's own name is not a naming of what is missing.
    ours = re.sub(r"\S*(file|http)://\S*", "", flat)
    named = bool(wanted.says) and re.search(wanted.says, ours) is not None
    if (
        is_error
        and not named
        and not (wanted.shows and re.search(wanted.shows[0], flat))
    ):
        return Outcome("refused", flat[:160])
    false = next(
        (found[0] for one in wanted.hides if (found := re.search(one, flat))), None
    )
    if false is not None:
        return Outcome("false", false[:80])
    lost = next((one for one in wanted.shows if re.search(one, flat) is None), None)
    if lost is None and (wanted.shows or (wanted.hides and not wanted.says)):
        return Outcome("right")
    if named:
        return Outcome("said")
    if _NONE.search(text):
        return Outcome("verdict", "none")
    return Outcome("lost", lost or wanted.says)


def _arguments(
    case: Mapping[str, Any], sources: Mapping[str, str], files: Path, port: int
) -> dict[str, Any]:
    """Return the arguments of a case's call with its source's own address here."""
    call = dict(case["call"])
    kept = {
        name: call[name] for name in ("question", "part", "max_tokens") if name in call
    }
    if "url" in call:
        source = str(call["url"]).replace("PORT", str(port))
    else:
        source = sources.get(case["id"]) or str(files / Path(case["input"]).name)
    return {"max_tokens": TOKENS, **kept, "sources": [source]}


async def _ask(
    client: Client, tool: str, arguments: Mapping[str, Any], wanted: Wanted
) -> tuple[Outcome, str]:
    result = await client.call_tool(tool, dict(arguments))
    text = "\n".join(
        block.text for block in result.content if isinstance(block, TextContent)
    )
    return judge(wanted, text, is_error=bool(result.is_error)), text


async def _search_with_password(folder: Path, port: int) -> tuple[Outcome, str]:
    reported = {
        "cache": str(folder / "search-cache"),
        "searxng": f"http://{USER}:{PASSWORD}@127.0.0.1:{port}/",
        "search": "searxng",
        "networks": "loopback",
        "web": "named",
    }
    try:
        server = build_server(read_settings(reported, {}))
    except WinnowError as error:
        return Outcome("refused", str(error)[:160]), str(error)
    async with Client(server) as client:
        return await _ask(
            client, "search_web", {"question": "arnvik"}, WANTED["searxng-auth"]
        )


async def run(ids: Sequence[str], *, misses: bool) -> list[tuple[str, Outcome]]:
    """Ask every case whose id begins with one of `ids` (all where empty); print each
    outcome."""
    lines = (DATA / "index.jsonl").read_text("utf-8").splitlines()
    cases = [
        case
        for case in map(json.loads, lines)
        if not ids or str(case["id"]).startswith(tuple(ids))
    ]
    outcomes = []
    with tempfile.TemporaryDirectory() as name, field_site() as port:
        folder = Path(name)
        sources = case_files(folder)
        reported = {
            "cache": str(folder / "cache"),
            "folders": str(folder),
            "search": "folder",
            "networks": "loopback",
            "web": "named",
            "robots": "false",
        }
        async with Client(build_server(read_settings(reported, {}))) as client:
            for case in cases:
                if case["id"] == "searxng-auth":
                    outcome, text = await _search_with_password(folder, port)
                else:
                    arguments = _arguments(case, sources, folder / "files", port)
                    outcome, text = await _ask(
                        client, case["call"]["tool"], arguments, WANTED[case["id"]]
                    )
                outcomes.append((case["id"], outcome))
                print(f"{case['id']:26}{_shown(outcome)}", flush=True)
                if misses and not outcome.is_right:
                    print(
                        f"    wanted: {case['expected']}\n    "
                        f"{text[:900].replace(chr(10), chr(10) + '    ')}"
                    )
    return outcomes


async def run_set(
    name: str, ids: Sequence[str], *, misses: bool
) -> list[tuple[str, Outcome]]:
    """Ask every case of a set of field2 that is a file, and whose id begins with one of
    `ids` (all where empty); print each outcome."""
    outcomes = []
    with tempfile.TemporaryDirectory() as folder:
        cases = file_cases(DATA.with_name("field2"), name, Path(folder, name))
        for case in cases:
            if ids and not case.id.startswith(tuple(ids)):
                continue
            reported = {
                "cache": str(Path(folder, "cache")),
                "folders": str(case.folder),
                "search": "folder",
            }
            wanted = Wanted(
                SHOWN.get(case.id, ()), HIDDEN.get(case.id, ()), SAID.get(case.id, "")
            )
            async with Client(build_server(read_settings(reported, {}))) as client:
                outcome, text = await _ask(client, case.tool, case.arguments, wanted)
            outcomes.append((case.id, outcome))
            print(f"{case.id:26}{_shown(outcome)}", flush=True)
            if misses and not outcome.is_right:
                print(f"    wanted: {case.expected}\n    {text[:900]}")
    return outcomes


def _shown(outcome: Outcome) -> str:
    if outcome.is_right:
        return outcome.type
    return f"wrong: {outcome.type}: {outcome.detail}"


def main() -> int:
    """Run the cases."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--check", action="store_true", help="exit code 1 where a case is wrong"
    )
    parser.add_argument(
        "--misses", action="store_true", help="print the answers that are wrong"
    )
    parser.add_argument("--only", default="", help="beginnings of ids, by commas")
    parser.add_argument(
        "--set",
        choices=("first", *SETS, "all"),
        default="first",
        help="which cases: the first set, or one of field2",
    )
    given = parser.parse_args()
    if not DATA.is_dir():
        print("skipped: ../shared/data is not beside this checkout")
        return 0
    ids = [one for one in given.only.split(",") if one]
    outcomes = []
    for name in ("first", *SETS):
        if given.set not in (name, "all"):
            continue
        if name == "first":
            outcomes += anyio.run(lambda: run(ids, misses=given.misses))
        else:
            outcomes += anyio.run(partial(run_set, name, ids, misses=given.misses))
    counts = Counter(outcome.type for _, outcome in outcomes)
    right = sum(outcome.is_right for _, outcome in outcomes)
    print(
        f"{right} of {len(outcomes)} right or said: "
        f"{', '.join(f'{kind} {n}' for kind, n in counts.items())}"
    )
    return 1 if given.check and right < len(outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
