"""What is wanted of the cases of ../shared/data/field2 whose sources are files
(`bench/field.py` asks them): patterns, since their `expect` is free text or empty.

A case that passed at f8229faa has the words that it showed then. Not for: cases that
are served over http, and those whose files were kept aside or are only described."""

import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

SETS: Final = ("bugs", "newcomer", "field", "honest")
SERVED_AREAS: Final = frozenset({"html", "forge", "web"})
FILE_TOOLS: Final = frozenset({"extract_relevant", "fetch_and_prune_html", "research"})
_REFUSED_ROWS: Final = r"sql: SELECT"
"""A call for computed rows is refused, naming the query that gives them."""
_LEASE: Final = r"The lessee shall pay the rent of 900 crowns before the tenth day"
SHOWN: Final[Mapping[str, tuple[str, ...]]] = {
    "wa1": (r"now in the post box",),
    "wa2": (r"the fuel card is with Irma",),
    "wa3": (r"I did, 48 crowns",),
    "wa4": (r"760 a month",),
    "wa5": (r"the deposit is two months",),
    "sl1": (r"Thursday 21:00 to 23:00",),
    "sl2": (r"Thursday 21:00 to 23:00, freeze from the 14th",),
    "sl3": (r"Grew the volume of lighthouse-3 to 400 GB",),
    "sl4": (r"disk 91 percent on lighthouse-3", r"to 400 GB"),
    "cg1": (r"six coats of varnish",),
    "g1": (r"A round turn and two half hitches",),
    "g2": (r"Tromsø",),
    "g3": (r"systemctl restart tidegauge",),
    "qa1": (r"Since the spring of 1998",),
    "qa1b": (r"The Grey Mare, at springs",),
    "qa2": (r"Paraffin only",),
    "qa4": (r"tz = UTC",),
    "qa5": (r"Under the third flower pot",),
    "tg1": (r"Aske Marine", r"84 000"),
    "jl2": (r"error \| crane",),
    "jl3": (r"2026-03-07T\S+ \| error \| pump",),
    "k5b": (r"2026-03-01 \| Tern \| \d \| Ann",),
    "ng1": (r"Jan \| \(1200\)",),
    "eu2": (r"Anker \| 7 \| 1\.049,00",),
    "eu3": (r"Seil \| 1\.250 \| 12,50 \| 03\.04\.2026",),
    "eu4": (r"Boje \| 80", r"Seil \| 1\.250"),
    "un1": (r"West \| 5\.1 m",),
    "un2": (r"North \| 4\.2 m \| 12 t", r"East \| 12 ft \| 15 t"),
    "xl2b": (r"North \| 12 \| 340",),
    "xl2d": (r"Sum \| 28 \| 750",),
    "c1": (r"'Morgenrot',812\.5",),
    "q9": (r"Tern \| 4 .*all members", r"Dunlin .*all members"),
    "ob1": (r"She says the ==ferry== moves to berth 14", r"draught: 2\.35"),
    "ob2": (r"moves to berth 14",),
    "ob3": (r"11 \| 05:12 \| 11:40",),
    "ob4": (r"2\.35",),
    "ob5": (r"\[ \] order new fenders",),
    "ob6": (r"0170 555 01",),
    "m5": (r"0170 555 01",),
    "ob7": (r"Met \[\[People/Ingrid Voss",),
    "nb1": (r"6 \| 302\.1",),
    "nb2": (r"6 \| 302\.1",),
    "nb3": (r"ValueError: matrix is singular at row 17",),
    "p1": (r"\+46 170 555 77",),
    "p1b": (r"has the spare key",),
    "p2": (r"Key: tern-4471-gannet",),
    "p2b": (r"Key: tern-4471-gannet", r"A \| 3 May"),
    "p12": (r"Key: tern-4471-gannet",),
    "p4": (r"Nobody rows well who is thinking of supper",),
    "p4b": (r"A tide gauge forgets nothing",),
    "k4": (r"Oak moves with the rain",),
    "p5": (r"Tariff of Holt", r"The old one with crane prices"),
    "p5b": (r"https://tides\.example/",),
    "p6": (r"Berg, Nora", r"2019"),
    "tx1": (r"Sea Lark", r"11\.5"),
    "tx5": (r"Berg, Nora", r"2019"),
    "of1": (r"~~80 crowns~~ 70 crowns",),
    "of1b": (r"Slip: 60 crowns",),
    "of2": (r"Early", r"23:00 \| lamp"),
    "of3": (r"Drive 48 piles in June", r"2025 \| 276"),
    "of3b": (r"Drive 48 piles in June",),
    "of3c": (r"2025 \| 276",),
    "xl1": (r"Ann \| 2026-03-04 \| 31:30 \| 7\.5%", r"HM-00217"),
    "xl1c": (r"Ann \| 2026-03-04 \| 31:30", r"Cy \| 2025-12-31 \| 100:00"),
    "xl1d": (r"Ann \| 2026-03-04 \| 31:30 \| 7\.5%",),
    "xl1f": (r"Paid until \| 2026-09-30",),
    "em1": (r"Cc: Bo Ryd", r"The winch costs 18,400 crowns", r"B2 \| 106"),
    "em1b": (r"The winch costs 18,400 crowns",),
    "em1c": (r"B2 \| 106",),
    "em1d": (r"Cc: Bo Ryd",),
    "em2": (r"Thursday at 4 pm in the net loft",),
    "pd1": (r"A crane costs 9 crowns an hour, members get a third off",),
    "pd1b": (r"A crane costs 9 crowns an hour",),
    "pd2": (r"Income rose because the ferry paid its arrears",),
    "k8": (r"each visit was charged at 7,400 crowns",),
    "pd3": (r"The spare fuse lies in drawer 6",),
    "pd3b": (r"The spare fuse lies in drawer 6",),
    "pd4": (r"West \| 4\.0 \| 6\.5",),
    "pd4b": (r"West \| 4\.0 \| 6\.5",),
    "pd5": (r"Hafenentgelt nicht zahlt", r"Wertpapierindex steht im Aushang"),
    "pd5b": (r"Wertpapierindex steht im Aushang bei 412",),
    "pd7": (_LEASE,),
    "pd9": (r"Coffee .* 2\.80",),
    "pd10": (r"☒ yes ☐ no",),
    "pd11": (r"the work takes one person",),
    "pd11b": (r"The drift was largest in the harbours",),
    "rt1": (r"המחיר הוא 412 שקלים",),
    "rt2": (r"412 שקלים",),
    "ep1": (r"The mate counted fourteen ?lights",),
    "sq_c3": (r"9\.9\.0 .*9\.8\.0 .*9\.7\.0",),
    "sq_p": (r"Part 0 .*Part 1 .*Part 2",),
    "sq_s": (r"I went aboard the Nell.*So here I sit on Sunday eve",),
    "sq_m": (r"The account stands at 41,200 crowns",),
    "dp3": (r"Ann Lind pays the whole", r"Bo Ryd pays the whole"),
    "dp4": (r"on 4 May 2026", r"on 9 June 2026"),
    "dp5": (r"40 litres", r"40 gallons"),
    "dp6": (r"on 4 May 2026", r"on 9 June 2026"),
    "sy1": (r"free for visitors below the age of 16",),
    "sy3": (r"Weight: 4\.2 kg",),
    "fo5": (r"code = 4711",),
    "q1": (r"Tern \| 4 \| 5\.2 m \| none", r"Puffin \| 2 \| 3\.4 m \| none"),
    "q2": (r"every boat except the Gannet",),
    "q3": (r"fuel not included",),
    "q4": (r"Tern: 20 crowns", r"Dunlin: 25 crowns"),
    "q5": (r"Gannet: 60 crowns", r"Skua: 110 crowns"),
    "q6": (r"the board of five", r"Per Holm \(treasurer\)"),
    "q7": (r"Anna Berg \(chair\)", r"Siri Moe"),
    "q11": (r"Tern: 20 crowns",),
    "q12": (r"Gannet: 60 crowns",),
    "q13": (r"The code of the box is changed",),
    "q15": (r"Puffin: 10 crowns",),
    "q16": (r"There is no drinking water in the hut",),
    "q18": (r"must not be used between 1 May and 30 September",),
    "q21": (r"Puffin: 10 crowns", r"Guests pay double"),
    "q22": (r"Skua \| 8 .*members with a motor licence",),
    **dict.fromkeys(("n1", "n1b", "n1c"), (r"Slip: 60 crowns",)),
    "n2": (r"must not be watered between 10",),
    "n3": (r"Fires are forbidden from April until October",),
    "n4": (r"visitors below the age of 16",),
    "n5": (r"Vehicles over 3\.5 t are not admitted",),
    "n6": (r"Weight: 4\.2 kg",),
    "n6b": (r"Power: 12 V",),
    "n6c": (r"Made in: Norway",),
    "n7": (r"Sun closed",),
    "n7b": (r"Sat 10-14",),
    "n8": (r"Bake for 55 minutes",),
    "n8b": (r"Let it rest overnight before cutting",),
    "n10": (r"The minimum is now 3\.10",),
    "n11": (r"outside the rush hours",),
    "n12": (r"three months' notice",),
    "c2": (r"MAX_RETRIES = 7",),
    "c3": (r"timeout=12",),
    "c4": (r"max_pressure = 0\.7",),
    "c5": (r"8085:80",),
    "c6": (r"postgres:16",),
    "c7": (r"res\.status\(403\)",),
    "c8": (r"\|\| 8123",),
    "c9": (r"/usr/local/bin",),
    "c10": (r"feePerDay: Int!",),
    "c11": (r"proxy_read_timeout 75s",),
    "c12": (r"client_max_body_size 20m",),
    "false-none-alternative": (r"612\.40",),
    "docs-example": (r"09:15",),
    "wrong-rows": tuple(f"R-24{number}" for number in (41, 52, 57, 58, 59)),
    "draft-season-years": (r"2011-12|third in the league",),
    "draft-order": (r"Ludovic",),
}
"""What a right answer shows, as patterns over it with its blanks folded."""
SAID: Final[Mapping[str, str]] = {
    **dict.fromkeys(("jl1", "ng2", "eu1", "xl2c", "xl1b", "p9"), _REFUSED_ROWS),
    "sq1": r"^(?!.*None: ).*2 files not searched|not everything was read",
    "p9b": r"not everything was read",
    "k2": r"not readable|cannot be read|not everything was read",
    "xl1e": r"hidden sheets removed: 2",
    "sc1": r"needs OCR",
    "sc2": r"not everything was read",
    "sc5": r"needs OCR",
    "sq2": r"cannot be read as text",
}
"""What a right answer may say in their place."""
HIDDEN: Final[Mapping[str, tuple[str, ...]]] = {
    "p4b": (r"# A tide gauge",),
    "k4": (r"# Oak moves",),
    "tx6": (r"9000",),
    "pd2": (r"ferry \| Costs",),
    "pd7": (r"\d \| The lessee",),
    **dict.fromkeys(("draft-season-years", "draft-order"), (r"contradicted",)),
}
"""What a right answer has nowhere."""


class FileCase(NamedTuple):
    """A call whose sources are files, with the folder that is open to it."""

    id: str
    tool: str
    arguments: dict[str, Any]
    folder: Path
    expected: str


def file_cases(data: Path, name: str, copied: Path) -> Iterator[FileCase]:
    """Copy a set to the folder `copied` and yield its cases that have files here and
    something wanted."""
    shutil.copytree(data / name, copied, dirs_exist_ok=True)
    lines = (data / "index.jsonl").read_text("utf-8").splitlines()
    named = {*SHOWN, *SAID, *HIDDEN}
    for case in map(json.loads, lines):
        if case["set"] != name or case["id"] not in named:
            continue
        arguments = dict(case.get("args") or case.get("tool/args") or {})
        tool = str(arguments.pop("tool", case.get("tool", "")))
        if case.get("area") in SERVED_AREAS or tool not in FILE_TOOLS:
            continue
        files = arguments.pop("sources", [] if tool == "research" else [case["file"]])
        paths = [copied / source for source in files]
        opened = copied if paths or name != "bugs" else copied / str(case["file"])
        if not opened.is_dir() or not all(path.exists() for path in paths):
            continue
        if paths:
            arguments["sources"] = list(map(str, paths))
        yield FileCase(case["id"], tool, arguments, opened, case["expect"])
