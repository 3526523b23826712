"""Subtitles and transcripts (WebVTT, SRT, ASS) to HTML: paragraphs with their times.

Cues are joined until a sentence ends or some seconds have passed, so that a paragraph can be read
and its time still leads to what is said. Not for: finding a page's transcript
(`extras/transcript.py`), nor hearing one.
"""

import html
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final, NamedTuple

from cancellation import check_cancelled
from readers.converted import MAX_ITEMS, Converted, escape, placed, whole_page

_CUE: Final = re.compile(
    r"^[ \t]*((?:\d+:)?\d\d?:\d\d(?:[.,]\d+)?)[ \t]*-->[ \t]*((?:\d+:)?\d\d?:\d\d(?:[.,]\d+)?)"
    r".*\n((?:(?!.*-->)[ \t]*\S.*\n?)*)",
    re.M,
)
"""Begin, end and text of a cue of WebVTT or SRT."""
_DIALOGUE: Final = re.compile(
    r"^Dialogue:[^,\n]*,\s*(\d+:\d\d:\d\d(?:[.:]\d+)?),\s*(\d+:\d\d:\d\d(?:[.:]\d+)?),"
    r"[^,\n]*,([^,\n]*),(?:[^,\n]*,){4}(.*)$",
    re.M,
)
"""Begin, end, speaker and text of a line of Advanced SubStation Alpha."""
_CUE_TAG: Final = re.compile(
    r"</?(?:[cibuv]|lang|ruby|rt|font)\b[^<>]{0,200}>|<[\d:.,]+>|\{[^{}]{0,500}\}", re.I
)
_CUE_ENDS: Final = (".", "!", "?", "。", "！", "？", "…", '."', "?”", ".”")
_SENTENCE_SECONDS: Final = 6.0
"""Seconds from which a paragraph ends with a sentence."""
_PARAGRAPH_SECONDS: Final = 30.0
"""Seconds after which it ends in any case: automatic captions have no full stops."""


class _Cue(NamedTuple):
    start: float
    stop: float
    lines: tuple[str, ...]
    speaker: str = ""


def subtitles_to_html(text: str) -> Converted | None:
    """Return WebVTT, SRT or ASS as HTML, None where there is no cue.

    At most `MAX_ITEMS` paragraphs are read, and the result says so."""
    paragraphs = _paragraphs(_dialogues(text) if "[Events]" in text else _cues(text))
    if not paragraphs:
        return None
    is_cut = len(paragraphs) >= MAX_ITEMS
    unread = f"what follows its first {MAX_ITEMS} paragraphs" if is_cut else ""
    return Converted(whole_page("\n".join(paragraphs)), unread=unread)


def timed_to_html(text: str) -> str:
    """Return WebVTT or SRT as the inside of an HTML page; empty for any other text."""
    return "\n".join(_paragraphs(_cues(text)))


def _cues(text: str) -> Iterator[_Cue]:
    for cue in _CUE.finditer(text.replace("\r\n", "\n").replace("\r", "\n")):
        voice = re.search(r"<v(?:\.[\w.]+)?\s+([^<>]{1,80})>", cue[3])
        text = html.unescape(_CUE_TAG.sub("", cue[3]))
        speaker = voice[1].strip() if voice else ""
        yield _Cue(_seconds(cue[1]), _seconds(cue[2]), _lines(text), speaker)


def _dialogues(text: str) -> Iterator[_Cue]:
    """Yield the cues of ASS in the order of their times; drawings and lines after
    `MAX_ITEMS` are dropped."""
    cues = [
        _Cue(_seconds(line[1]), _seconds(line[2]), _lines(dialogue), line[3].strip())
        for line in islice(_DIALOGUE.finditer(text), MAX_ITEMS)
        if not re.search(r"\\p[1-9]", line[4])
        for dialogue in (re.sub(r"\\[Nnh]", "\n", _CUE_TAG.sub("", line[4])),)
    ]
    yield from sorted(cues, key=lambda cue: cue.start)


def _lines(text: str) -> tuple[str, ...]:
    return tuple(" ".join(line.split()) for line in text.splitlines() if line.strip())


def _paragraphs(cues: Iterable[_Cue]) -> list[str]:
    """Return cues as paragraphs, each line that is repeated once, `MAX_ITEMS` at most."""
    paragraphs: list[str] = []
    held: list[_Cue] = []
    previous: tuple[str, ...] = ()
    for cue in cues:
        check_cancelled()
        new = _unrolled(cue.lines, previous)
        previous = cue.lines or previous
        if not new or len(paragraphs) >= MAX_ITEMS:
            continue
        if held and (_is_paragraph(held) or cue.speaker != held[0].speaker):
            paragraphs.append(_paragraph(held))
            held = []
        held.append(cue._replace(lines=new))
    return [*paragraphs, _paragraph(held)] if held else paragraphs


def _is_paragraph(cues: list[_Cue]) -> bool:
    seconds = cues[-1].stop - cues[0].start
    ends = seconds >= _SENTENCE_SECONDS and cues[-1].lines[-1].endswith(_CUE_ENDS)
    return ends or seconds >= _PARAGRAPH_SECONDS


def _unrolled(lines: tuple[str, ...], previous: tuple[str, ...]) -> tuple[str, ...]:
    """Return what a cue adds to the one before it: automatic captions roll or grow, and
    repeat lines once or twice."""
    for count in range(min(len(lines), len(previous)), 0, -1):
        if lines[:count] == previous[-count:]:
            return lines[count:]
    text, repeated = " ".join(lines), " ".join(previous)
    grown = text.startswith(repeated) and repeated
    return _lines(text.removeprefix(repeated)) if grown else lines


def _paragraph(cues: list[_Cue]) -> str:
    text = " ".join(line for cue in cues for line in cue.lines)
    dialogue = f"{cues[0].speaker}: {text}" if cues[0].speaker else text
    start, stop = _clock(cues[0].start), _clock(max(cue.stop for cue in cues))
    return placed(escape(dialogue), f"t={start},{stop}", tag="p")


def _seconds(clock: str) -> float:
    seconds = 0.0
    for digits in clock.replace(",", ".").split(":"):
        seconds = 60 * seconds + float(digits)
    return min(seconds, 360_000.0)


def _clock(seconds: float) -> str:
    total = int(seconds)
    return f"{total // 3600:02}:{total // 60 % 60:02}:{total % 60:02}"
