"""Files of every format, made by other programs, with what is known to be in them, and where.

pandoc writes DOCX, ODT, RTF, EPUB, PPTX and notebooks, LibreOffice workbooks and OpenDocument's slides, git and
Python's `email` mail. Not for: scans, pages of the web."""

import csv
import json
import mailbox
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from email.message import EmailMessage
from functools import cache
from pathlib import Path
from random import Random
from typing import Final
from xml.sax.saxutils import escape

from pipeline.document.cite import position_name

FILES: Final = 9
"""Of each format."""
SPOKEN: Final = 7
"""Seconds from the beginning of a thing's first sentence to that of its second."""
MEGABYTES: Final = 100
_PLACES: Final = [
    "Pell",
    "Brod",
    "Orvane",
    "Tessin",
    "Morwick",
    "Halden",
    "Cresta",
    "Varn",
    "Linthe",
    "Osk",
    "Dunmere",
    "Salla",
    "Quill",
    "Arbon",
    "Fenn",
    "Ister",
]
_KINDS: Final = (
    "bridge",
    "mill",
    "harbour",
    "tower",
    "ferry",
    "market hall",
    "chapel",
    "weir",
    "granary",
    "lock",
)
_PEOPLE: Final = [
    "Ana Kovac",
    "Piet Mondal",
    "Ruth Saller",
    "Ivo Brandt",
    "Mara Lindqvist",
    "Tomas Reyle",
    "Edda Voss",
    "Jan Okoro",
]
_MATTER: Final = (
    "oak",
    "granite",
    "brick",
    "larch",
    "limestone",
    "iron",
    "slate",
    "chestnut",
)
_FILL: Final = (
    "The minutes of that year tell little more than this.",
    "Travellers wrote of it in letters that were printed later.",
    "A drawing of it hangs in the room where the council meets.",
    "The road past it is closed when the river is high.",
    "Children of the town learn its story at school.",
    "No one has counted how many people pass there on a market day.",
)


@dataclass(frozen=True, slots=True)
class Thing:
    """What a section, slide, cell, row or message is about."""

    name: str
    year: int
    maker: str
    cost: int
    matter: str
    fill: str

    @property
    def said(self) -> list[str]:
        """What is reported of it, in sentences."""
        return [
            f"The {self.name} was built in {self.year} by {self.maker}.",
            f"It is made of {self.matter}, and its repair came to {self.cost} crowns.",
            self.fill,
        ]

    def asked(self, number: int) -> tuple[str, str]:
        """Return a question and its answer."""
        return (
            (f"Who put up the {self.name}?", self.maker),
            (f"How much did repairing the {self.name} cost?", str(self.cost)),
            (f"In which year was the {self.name} constructed?", str(self.year)),
            (f"What material is the {self.name} of?", self.matter),
        )[number % 4]


@dataclass(frozen=True, slots=True)
class Made:
    """One file: what it shows, with where each thing is in it as links say it, and its
    text by another program."""

    path: Path
    things: list[Thing]
    places: list[str]
    dump: str


def things(seed: str, count: int) -> list[Thing]:
    """Return distinct things, the same for the same seed."""
    draw = Random(seed)
    names = draw.sample([f"{kind} of {place}" for place in _PLACES for kind in _KINDS], count)
    return [
        Thing(
            name,
            draw.randrange(1610, 1980),
            draw.choice(_PEOPLE),
            draw.randrange(1200, 98000),
            draw.choice(_MATTER),
            " ".join(draw.sample(_FILL, 2)),
        )
        for name in names
    ]


def run(*command: str, stdin: str = "") -> str:
    """Run a program and return what it writes; raises where it fails."""
    done = subprocess.run(
        command, input=stdin, capture_output=True, text=True, check=True, timeout=300
    )
    return done.stdout


@cache
def runs(program: str) -> bool:
    """Return whether a program is here and prints its version: one that is
    installed and cannot start makes no files."""
    if shutil.which(program) is None:
        return False
    asked = subprocess.run((program, "--version"), capture_output=True, check=False, timeout=300)
    return asked.returncode == 0


def by_markdown(text: str, path: Path, *flags: str) -> None:
    """Let pandoc write Markdown in the form that the ending of `path` says."""
    form = path.suffix[1:]
    run("pandoc", "-f", "markdown", "-t", form, *flags, "-o", str(path), stdin=text)


def office(form: str, folder: Path, paths: Sequence[Path]) -> None:
    """Let LibreOffice save files in another form into a folder."""
    profile = f"-env:UserInstallation={(folder / 'profile').as_uri()}"
    run(
        "soffice",
        profile,
        "--headless",
        "--convert-to",
        form,
        "--outdir",
        str(folder),
        *map(str, paths),
    )
    shutil.rmtree(folder / "profile", ignore_errors=True)


# Formats: each takes a folder and returns its files


def by_pandoc(form: str) -> Callable[[Path], list[Made]]:
    """Return the maker of a format that pandoc writes and reads again."""

    def make(folder: Path) -> list[Made]:
        made = []
        for number in range(FILES):
            reported = things(f"{form}{number}", 24)
            chapters = [reported[place : place + 4] for place in range(0, 24, 4)]
            text = "---\ntitle: The works of the valley\nauthor: The council\n---\n\n"
            for place, chapter in enumerate(chapters, start=1):
                text += f"# Part {place}\n\n"
                text += "".join(
                    f"## {one.name.capitalize()}\n\n{' '.join(one.said)}\n\n" for one in chapter
                )
            path = folder / f"{number}.{form}"
            by_markdown(text, path, "-s")
            places = [f"part={place // 4 + 2}" if form == "epub" else "" for place in range(24)]
            made.append(
                Made(
                    path,
                    reported,
                    places,
                    run("pandoc", "-t", "plain", "--wrap=none", str(path)),
                )
            )
        return made

    return make


def notebooks(folder: Path) -> list[Made]:
    """Write notebooks of text, programs and what these printed."""
    made = []
    for number in range(FILES):
        reported = things(f"ipynb{number}", 20)
        cells = []
        for place, one in enumerate(reported):
            if place % 2:
                cells.append(
                    f"::: {{.cell .markdown}}\n## "
                    f"{one.name.capitalize()}\n\n{' '.join(one.said)}\n:::\n"
                )
                continue
            program = f"```python\nreport({json.dumps(one.name)})\n```\n"
            printed = "::: {.output .stream .stdout}\n```\n" + "\n".join(one.said) + "\n```\n:::\n"
            cells.append(f"::: {{.cell .code}}\n{program}\n{printed}:::\n")
        path = folder / f"{number}.ipynb"
        by_markdown("\n".join(cells), path)
        dump = run("pandoc", "-t", "plain", "--wrap=none", str(path))
        made.append(Made(path, reported, [f"cell={place}" for place in range(1, 21)], dump))
    return made


def slides(folder: Path) -> list[Made]:
    """Write presentations, every third thing reported in the speaker's notes, every
    third in a table."""
    made = []
    for number in range(FILES):
        reported = things(f"pptx{number}", 18)
        text = "---\ntitle: The works of the valley\n---\n\n"
        for place, one in enumerate(reported):
            lines = "\n".join(f"- {sentence}" for sentence in one.said)
            if place % 3 == 1:
                lines = f"- {one.fill}\n\n::: notes\n{' '.join(one.said)}\n:::"
            elif place % 3 == 2:
                rows = {
                    "Built": one.year,
                    "Maker": one.maker,
                    "Material": one.matter,
                    "Repair cost": one.cost,
                }
                lines = "| Fact | Value |\n|---|---|\n" + "\n".join(
                    f"| {name} | {value} |" for name, value in rows.items()
                )
            text += f"# {one.name.capitalize()}\n\n{lines}\n\n"
        path = folder / f"{number}.pptx"
        by_markdown(text, path, "-s", "--slide-level=1")
        made.append(Made(path, reported, [f"slide={place}" for place in range(2, 20)], text))
    return made


def odp(folder: Path) -> list[Made]:
    """Let LibreOffice save the presentations as OpenDocument."""
    inner = folder / "pptx"
    inner.mkdir()
    made = slides(inner)
    office("odp", folder, [one.path for one in made])
    return [Made(folder / f"{one.path.stem}.odp", one.things, one.places, one.dump) for one in made]


_HEADER: Final = ("Name", "Built", "Maker", "Repair cost", "Material")


def sheet_rows(reported: Sequence[Thing]) -> list[tuple[str, ...]]:
    """Return things as rows."""
    return [
        (one.name.capitalize(), str(one.year), one.maker, str(one.cost), one.matter)
        for one in reported
    ]


def by_office(form: str) -> Callable[[Path], list[Made]]:
    """Return the maker of workbooks: three sheets, a caption above each and a second
    table below an empty row."""

    def make(folder: Path) -> list[Made]:
        flat = folder / "flat"
        flat.mkdir()
        made = []
        for number in range(FILES):
            reported = things(f"{form}{number}", 60)
            tables, places, dump = "", list[str](), ""
            for sheet, name in enumerate(("North", "South bank", "Coast, old")):
                rows = sheet_rows(reported[20 * sheet : 20 * sheet + 20])
                filled_rows = [
                    (f"Works, {name}",),
                    (),
                    _HEADER,
                    *rows[:12],
                    (),
                    _HEADER,
                    *rows[12:],
                ]
                tables += _flat_sheet(name, filled_rows)
                places += [f"{name}!{row}" for row in (*range(4, 16), *range(18, 26))]
                dump += "\n".join(",".join(row) for row in filled_rows) + "\n"
            (flat / f"{number}.fods").write_text(_FLAT.format(tables), "utf-8")
            made.append(Made(folder / f"{number}.{form}", reported, places, dump))
        office(form, folder, sorted(flat.glob("*.fods")))
        return made

    return make


_FLAT: Final = (
    '<?xml version="1.0" encoding="UTF-8"?><office:document office:version="1.2" '
    'office:mimetype="application/vnd.oasis.opendocument.spreadsheet" '
    'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
    'xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" '
    'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"><office:body><office:spreadsheet>{}'
    "</office:spreadsheet></office:body></office:document>"
)


def _flat_sheet(name: str, rows: Sequence[Sequence[str]]) -> str:
    cells = ("".join(map(_flat_cell, row)) or "<table:table-cell/>" for row in rows)
    inner = "".join(f"<table:table-row>{row}</table:table-row>" for row in cells)
    return f'<table:table table:name="{name}">{inner}</table:table>'


def _flat_cell(value: str) -> str:
    kind = (
        f'office:value-type="float" office:value="{value}"'
        if value.isdigit()
        else 'office:value-type="string"'
    )
    return f"<table:table-cell {kind}><text:p>{escape(value)}</text:p></table:table-cell>"


def tables(folder: Path) -> list[Made]:
    """Write tables as CSV."""
    made = []
    for number in range(FILES):
        reported = things(f"csv{number}", 60)
        path = folder / f"{number}.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([_HEADER, *sheet_rows(reported)])
        made.append(
            Made(
                path,
                reported,
                [f"row={row}" for row in range(2, 62)],
                path.read_text("utf-8"),
            )
        )
    return made


def _message(reported: Sequence[Thing], number: int) -> EmailMessage:
    message = EmailMessage()
    message["From"], message["To"] = (
        "Edda Voss <edda@example.org>",
        "council@example.org",
    )
    message["Subject"] = f"Works of the valley, {reported[0].name}"
    message["Date"] = f"Mon, {number % 28 + 1:02} Feb 2021 10:00:00 +0000"
    plain = "\n\n".join(" ".join(one.said) for one in reported)
    message.set_content(plain)
    if number % 2:
        message.add_alternative(
            "".join(f"<p>{escape(' '.join(one.said))}</p>" for one in reported),
            subtype="html",
        )
        message.add_attachment(
            b"%PDF-1.7",
            maintype="application",
            subtype="pdf",
            filename=f"plan{number}.pdf",
        )
    return message


def letters(folder: Path) -> list[Made]:
    """Write messages, every other one in HTML with an attachment."""
    made = []
    for number in range(FILES):
        reported = things(f"eml{number}", 24)
        path = folder / f"{number}.eml"
        path.write_bytes(bytes(_message(reported, number)))
        made.append(
            Made(
                path,
                reported,
                [""] * 24,
                "\n".join(" ".join(one.said) for one in reported),
            )
        )
    return made


def boxes(folder: Path) -> list[Made]:
    """Write mail boxes: half by Python, half by git, whose patches are messages."""
    made = []
    for number in range(FILES):
        reported = things(f"mbox{number}", 24)
        path = folder / f"{number}.mbox"
        groups = [reported[place : place + 2] for place in range(0, 24, 2)]
        if number % 2:
            path.write_text(_patches(folder / f"git{number}", groups), "utf-8")
        else:
            box = mailbox.mbox(path)
            for place, group in enumerate(groups):
                box.add(_message(group, place))
            box.close()
        dump = "\n".join(" ".join(one.said) for one in reported)
        made.append(
            Made(
                path,
                reported,
                [f"message={place // 2 + 1}" for place in range(24)],
                dump,
            )
        )
    return made


def _patches(folder: Path, groups: Sequence[Sequence[Thing]]) -> str:
    run("git", "init", "-q", str(folder))
    git = (
        "git",
        "-C",
        str(folder),
        "-c",
        "user.name=Edda Voss",
        "-c",
        "user.email=edda@example.org",
    )
    for group in groups:
        text = f"Works of the valley, {group[0].name}\n\n" + "\n\n".join(
            " ".join(one.said) for one in group
        )
        run(*git, "commit", "-q", "--allow-empty", "-F", "-", stdin=text)
    return run(*git, "format-patch", "--always", "--root", "--stdout")


def subtitles(form: str) -> Callable[[Path], list[Made]]:
    """Return the maker of subtitles: a cue for half a sentence, at uneven times."""

    def make(folder: Path) -> list[Made]:
        made = []
        for number in range(FILES):
            draw = Random(f"{form}{number}")
            reported = things(f"{form}{number}", 40)
            clock, cues, places = 5.0, list[str](), list[str]()
            for one in reported:
                places.append(f"t={int(clock)}")
                for sentence in one.said:
                    words = sentence.split()
                    for half in (words[: len(words) // 2], words[len(words) // 2 :]):
                        lasts = 1.5 + draw.random() * 2
                        cues.append(
                            f"{_clock(clock, form)} --> "
                            f"{_clock(clock + lasts, form)}\n{' '.join(half)}\n"
                        )
                        clock += lasts + draw.random()
            text = "\n".join(
                cues
                if form == "vtt"
                else (f"{place}\n{cue}" for place, cue in enumerate(cues, start=1))
            )
            path = folder / f"{number}.{form}"
            path.write_text(f"WEBVTT\n\n{text}" if form == "vtt" else text, "utf-8")
            made.append(Made(path, reported, places, text))
        return made

    return make


def _clock(seconds: float, form: str) -> str:
    whole, mark = int(seconds), "." if form == "vtt" else ","
    return f"{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}{mark}{int(seconds % 1 * 1000):03}"


FORMATS: Final[dict[str, Callable[[Path], list[Made]]]] = {
    **{form: by_pandoc(form) for form in ("docx", "odt", "rtf", "epub")},
    "ipynb": notebooks,
    "pptx": slides,
    "odp": odp,
    **{form: by_office(form) for form in ("xlsx", "ods")},
    "csv": tables,
    "eml": letters,
    "mbox": boxes,
    **{form: subtitles(form) for form in ("srt", "vtt")},
}
NEEDS: Final = {
    **dict.fromkeys(("docx", "odt", "rtf", "epub", "ipynb", "pptx", "odp"), ("pandoc",)),
    **dict.fromkeys(("xlsx", "ods"), ("soffice",)),
}


def lacking(form: str) -> str:
    """Return the program that a format's files cannot be made without and that does not
    run here; empty where they can be made."""
    needed = (*NEEDS.get(form, ()), *(("soffice",) if form == "odp" else ()))
    return next((name for name in needed if not runs(name)), "")


def leads_to(place: str, text: str) -> bool:
    """Return whether a link in a text, or the label of a passage, names a place of a
    file or a range that holds it."""
    links = (link.partition(":~:")[0] for link in re.findall(r"#([^\s\"'\\]*)", text))
    named = [*map(position_name, links), *re.findall(r"\(\w+, (.+?)\) ", text)]
    if place.startswith("t="):
        spans = [re.fullmatch(r"([\d:]+),([\d:]+)", one) for one in named]
        second = int(place[2:])
        return any(
            span and _seconds(span[1]) <= second + SPOKEN and second <= _seconds(span[2])
            for span in spans
        )
    if place.startswith(("row=", "cell=")) or "!" in place:
        first, last = (rf"{place.partition('=')[0]} (\d+)", r"(?:-(\d+))?")
        sheet, _, row = place.rpartition("!" if "!" in place else "=")
        if "!" in place:
            first, last = rf"{re.escape(sheet)}!A(\d+)", r"(?::[A-Z]+(\d+))?"
        found = [re.fullmatch(first + last, one) for one in named]
        return any(one and int(one[1]) <= int(row) <= int(one[2] or one[1]) for one in found)
    return not place or position_name(place) in named


def _seconds(clock: str) -> int:
    hours, minutes, seconds = map(int, clock.split(":"))
    return 3600 * hours + 60 * minutes + seconds
