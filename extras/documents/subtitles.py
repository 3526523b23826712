"""Subtitles and transcripts (WebVTT, SRT, YouTube's timed text, podcasts' JSON) to HTML: paragraphs
with their times.

Cues are joined until a sentence ends or some seconds have passed, so that a paragraph can be read
and its time still leads to what is said. Not for: finding a page's transcript
(`extras/transcript.py`), nor hearing one.
"""

import html
import json
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final, NamedTuple

from pipeline.document.converted import MAX_ITEMS, Converted, escape, placed, whole_page
from pipeline.work import check_cancelled

_CUE_TIMES: Final = re.compile(
    r"^[ \t]*((?:\d+:)?\d\d?:\d\d(?:[.,]\d+)?)[ \t]*-->[ \t]*((?:\d+:)?\d\d?:\d\d(?:[.,]\d+)?)",
    re.M,
)
_CUE_TAG: Final = re.compile(
    r"</?(?:[cibuv]|lang|ruby|rt|font|\d\d)[^<>]{0,200}>|\{\\an\d\}|<(?:\d+:)?\d\d:\d\d[.,]\d+>",
    re.I,
)
_VOICE: Final = re.compile(r"<v(?:\.[\w.]+)?\s+([^<>]{1,80})>")
_OVERRIDE: Final = re.compile(r"\{[^{}]{0,500}\}")
_DRAWING_COMMAND: Final = re.compile(r"\{[^{}]{0,200}\\p[1-9]")
"""What in ASS draws a shape."""
_CUE_CLOCK: Final = re.compile(r"\d+:\d\d:\d\d(?:[.:]\d+)?")
_NOTE_BLOCK: Final = re.compile(
    r"\n[ \t]*\n(?:NOTE|STYLE|REGION)\b.*?(?=\n[ \t]*\n|\Z)", re.DOTALL
)
_CUE_ENDS: Final = (".", "!", "?", "。", "！", "？", "…", '."', "?”", ".”")
_SENTENCE_SECONDS: Final = 6.0
"""Seconds from which a paragraph ends with a sentence."""
_PARAGRAPH_SECONDS: Final = 30.0
"""Seconds after which it ends in any case: automatic captions have no full stops."""


class _Cue(NamedTuple):
    start: float
    end: float
    text: str
    speaker: str = ""
    lines: tuple[str, ...] = ()
    """The text by lines, for captions that roll."""


def subtitles_to_html(text: str) -> Converted | None:
    """Return WebVTT, SRT or ASS as HTML, None where there is no cue.

    At most `MAX_ITEMS` paragraphs are read, and the result says so."""
    inner = _body(_script_cues(text) if "[Events]" in text else _cues(text))
    if not inner:
        return None
    unread = (
        f"what follows its first {MAX_ITEMS} paragraphs"
        if inner.count("\n") + 1 >= MAX_ITEMS
        else ""
    )
    return Converted(whole_page(inner), unread=unread)


def timed_to_html(text: str) -> str:
    """Return a transcript in any of the forms that pages refer to as the inside of an
    HTML page; empty for none.

    JSON that is malformed is searched for the times of WebVTT and SRT."""
    try:
        value = json.loads(text) if text.lstrip()[:1] == "{" else None
    except (ValueError, RecursionError):
        value = None
    return _body(_json_cues(value) if isinstance(value, dict) else _cues(text))


def _cues(text: str) -> Iterator[_Cue]:
    """Yield the cues of WebVTT or SRT."""
    text = _NOTE_BLOCK.sub("\n", text.replace("\r\n", "\n").replace("\r", "\n"))
    found = list(_CUE_TIMES.finditer(text))
    for index, one in enumerate(found):
        end = found[index + 1].start() if index + 1 < len(found) else len(text)
        below = text[one.end() : end].partition("\n")[2]
        lines = below.partition("\n\n")[0] if "\n\n" in below else below
        voice = _VOICE.search(lines)
        said = html.unescape(_CUE_TAG.sub("", _VOICE.sub("", lines)))
        yield _cue(
            _seconds(one[1]), _seconds(one[2]), said, voice[1].strip() if voice else ""
        )


def _cue(start: float, end: float, said: str, speaker: str = "") -> _Cue:
    lines = tuple(line for one in said.splitlines() if (line := " ".join(one.split())))
    return _Cue(start, end, " ".join(lines), speaker, lines)


def _script_cues(text: str) -> Iterator[_Cue]:
    """Yield the cues of Advanced SubStation Alpha (ASS, SSA) in the order of their
    times.

    Nothing where the form names no times or does not end in the text. Malformed times,
    drawings and lines after `MAX_ITEMS` are dropped."""
    events = text.partition("[Events]")[2]
    form = re.search(r"(?m)^Format:(.*)$", events)
    fields = [name.strip().lower() for name in form[1].split(",")] if form else []
    if not {"start", "end", "text"} <= set(fields) or fields[-1] != "text":
        return
    cues: list[_Cue] = []
    for found in islice(re.finditer(r"(?m)^Dialogue:(.*)$", events), MAX_ITEMS):
        values = dict(zip(fields, found[1].split(",", len(fields) - 1), strict=False))
        if not _DRAWING_COMMAND.search(values.get("text", "")) and all(
            _CUE_CLOCK.fullmatch(values[name].strip())
            for name in fields[:3]
            if name in {"start", "end"}
        ):
            said = (
                _OVERRIDE.sub("", values.get("text", ""))
                .replace("\\N", "\n")
                .replace("\\n", "\n")
            )
            start, end = (_seconds(values[name].strip()) for name in ("start", "end"))
            cues.append(
                _cue(
                    start, end, said.replace("\\h", " "), values.get("name", "").strip()
                )
            )
    yield from sorted(cues, key=lambda cue: cue.start)


def _json_cues(value: dict[str, object]) -> Iterator[_Cue]:
    """Yield the cues of a podcast's JSON transcript (Podcasting 2.0); none where it has
    no segments, and "" for what a segment lacks."""
    segments = value.get("segments")
    for one in segments if isinstance(segments, list) else ():
        if isinstance(one, dict):
            start, end = _number(one.get("startTime")), _number(one.get("endTime"))
            yield _Cue(
                start, end, str(one.get("body", "")), str(one.get("speaker", ""))
            )


def _body(cues: Iterable[_Cue]) -> str:
    parts: list[str] = []
    held: list[_Cue] = []
    last = _Cue(0.0, 0.0, "")
    for number, cue in enumerate(cues):
        if number % 1000 == 0:
            check_cancelled()
        new = _unrolled(cue, last)
        last = cue if cue.text else last
        if not new or len(parts) >= MAX_ITEMS:
            continue
        if held and (_is_whole(held) or cue.speaker != held[0].speaker):
            parts.append(_paragraph(held))
            held = []
        held.append(cue._replace(text=new))
    return "\n".join([*parts, _paragraph(held)] if held else parts)


def _is_whole(cues: list[_Cue]) -> bool:
    """Whether cues are long enough for a paragraph, and end as one."""
    lasts = cues[-1].end - cues[0].start
    ends = lasts >= _SENTENCE_SECONDS and cues[-1].text.endswith(_CUE_ENDS)
    return ends or lasts >= _PARAGRAPH_SECONDS


def _unrolled(cue: _Cue, last: _Cue) -> str:
    """Return what a cue adds to the one before it: automatic captions roll, and repeat lines once
    or twice."""
    for count in range(min(len(cue.lines), len(last.lines)), 0, -1):
        if cue.lines[:count] == last.lines[-count:]:
            return " ".join(cue.lines[count:])
    return (
        cue.text.removeprefix(last.text).strip()
        if last.text and cue.text.startswith(last.text)
        else cue.text
    )


def _paragraph(cues: list[_Cue]) -> str:
    said = " ".join(cue.text for cue in cues)
    spoken = f"{cues[0].speaker}: {said}" if cues[0].speaker else said
    return placed(
        escape(spoken),
        f"t={_clock(cues[0].start)},{_clock(max(cue.end for cue in cues))}",
        tag="p",
    )


def _seconds(clock: str) -> float:
    seconds = 0.0
    for part in clock.replace(",", ".").split(":"):
        seconds = 60 * seconds + float(part)
    return min(seconds, 360_000.0)


def _number(value: object) -> float:
    return min(float(value), 360_000_000.0) if isinstance(value, int | float) else 0.0


def _clock(seconds: float) -> str:
    whole = int(seconds)
    return f"{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}"
