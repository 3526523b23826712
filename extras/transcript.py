"""The transcript of a video or podcast, where its page gives one: caption tracks,
subtitles, YouTube's player data.

What the page names is fetched through the guard as a part of the page, and added after
its text with times for links. Not for: speech recognition; subtitle formats
(`readers/media/subtitles.py`).
"""

import json
import re
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit

import anyio
from selectolax.lexbor import LexborNode

from errors import SourceError
from pipeline.work import in_thread
from readers.convert import Raw, kind_of
from readers.format import HTML
from readers.html.addresses import base_of
from readers.html.guard import parse
from readers.media.subtitles import timed_to_html
from readers.sniff import decode

_TRANSCRIPT_BYTES: Final = tuple(
    b"captiontracks <track <video <audio text/vtt x-subrip .vtt\" .vtt' .vtt? .srt\" .srt' .srt?".split()
)
"""What a page with a film, a sound or captions holds, in lower case; looked for one by
one, which takes a tenth of what a pattern of all does."""
_CAPTIONS: Final = '"captionTracks":'
_YOUTUBE_VIDEO: Final = re.compile(
    r"https?://(?:www\.|m\.)?(?:youtube\.com/(?:watch|shorts/|live/)|youtu\.be/)"
)
_TRANSCRIPT_LINKS: Final = (
    'track[src], link[href][type="text/vtt"], link[href][type*="subrip"], '
    'a[href$=".vtt"], a[href$=".srt"]'
)
_SPOKEN: Final = frozenset({"", "captions", "subtitles"})
"""Kinds of tracks that hold what is said; others name chapters or describe pictures."""
SILENT: Final = "the page's video or audio was not read: the page has no transcript"


class _Track(NamedTuple):
    url: str
    language: str = ""
    is_automatic: bool = False


def _may_have_one(body: bytes) -> bool:
    lowered = body.lower()
    return any(name in lowered for name in _TRANSCRIPT_BYTES)


async def with_transcript(
    raw: Raw, get: Callable[[str], Awaitable[bytes]], seconds: float
) -> Raw:
    """Return a web page with its transcript as `raw.spoken`; a note says where it has a
    film or sound and gives none, `raw.unread` where it could not be read.

    `get` fetches a sub-resource of the page and raises `SourceError`; it may take
    `seconds`."""
    is_film = _YOUTUBE_VIDEO.match(raw.final_url) is not None
    if not is_film and not _may_have_one(raw.body):
        return raw
    if kind_of(raw) != HTML:
        return raw
    tracks, shows = await in_thread(_tracks, raw)
    if not tracks:
        return replace(raw, notes=(*raw.notes, SILENT)) if shows or is_film else raw
    body, why = b"", "it was too slow"
    with anyio.move_on_after(seconds):
        try:
            body = await get(tracks[0].url)
            why = "it has no timestamps"
        except SourceError as error:
            why = error.shown
    timed = await in_thread(lambda: timed_to_html(decode(body).text))
    if not timed:
        return replace(
            raw, unread=f"the transcript that the page names could not be read: {why}"
        )
    origin = (
        "automatic, with its errors"
        if tracks[0].is_automatic
        else "as the page gives it"
    )
    return replace(
        raw,
        spoken=f"<section><h2>Transcript</h2>\n{timed}\n</section>",
        notes=(*raw.notes, f"transcript: {origin}"),
    )


def _tracks(raw: Raw) -> tuple[list[_Track], bool]:
    """Return the transcripts that a page names, best first, and whether it has a film
    or sound that a reader plays."""
    html = decode(raw.body, content_type=raw.content_type).text
    tracks, root = _players(html), parse(html)
    if root is not None:
        tracks += _linked(root, base_of(html, raw.final_url))
    shows = (
        root is not None
        and root.css_first("video[controls], audio[controls]") is not None
    )
    language = (root.attributes.get("lang") or "")[:2] if root is not None else ""
    tracks = [
        track for track in tracks if urlsplit(track.url).scheme in {"http", "https"}
    ]
    return sorted(
        tracks, key=lambda track: (track.is_automatic, track.language != language)
    ), shows


def _linked(root: LexborNode, base: str) -> Iterator[_Track]:
    for node in root.css(_TRANSCRIPT_LINKS):
        attributes = node.attributes
        address = attributes.get("src") or attributes.get("href") or ""
        language = attributes.get("srclang") or attributes.get("hreflang") or ""
        if (attributes.get("kind") or "") in _SPOKEN:
            yield _Track(urljoin(base, address), language[:2])


def _players(html: str) -> list[_Track]:
    """Return the tracks in YouTube's player data, as WebVTT; [] where there is none or
    it has another form."""
    offset = html.find(_CAPTIONS)
    if offset < 0:
        return []
    try:
        listed, _ = json.JSONDecoder().raw_decode(
            html[offset + len(_CAPTIONS) :].lstrip()[:200_000]
        )
    except (ValueError, RecursionError):
        return []
    tracks = []
    for entry in listed if isinstance(listed, list) else ():
        if isinstance(entry, dict) and isinstance(address := entry.get("baseUrl"), str):
            split = urlsplit(urljoin("https://www.youtube.com/", address))
            query = urlencode(
                [pair for pair in parse_qsl(split.query) if pair[0] != "fmt"]
                + [("fmt", "vtt")]
            )
            language = str(entry.get("languageCode", ""))[:2]
            tracks.append(
                _Track(
                    split._replace(query=query).geturl(),
                    language,
                    entry.get("kind") == "asr",
                )
            )
    return tracks
