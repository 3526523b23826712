"""The part of the attack set that words things: what strangers write into types,
addresses, links and answers of servers, in lines of ours.

Not for: the same through every tool, part and resource of a server
(`tests/test_outside.py`)."""

import random
import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import unquote

from errors import NARROW, narrow, said, unopened
from pipeline.document.cite import cite
from readers.html.document import read_document
from readers.page import Page
from readers.sniff import media_type
from tests.support.attacks import BAD, FACT, FILL

_FRAME: Final = re.compile("«([0-9]{12})»(?:\n.*?\n| [^\n]*? )«/\\1»", re.DOTALL)


def outside(rng: random.Random, count: int) -> Iterator[str]:
    """Words of strangers in types, addresses, links and what servers say, in lines of
    ours."""
    words = BAD.split()
    for _ in range(count):
        some = rng.sample(words, rng.randrange(5, len(words) + 1)) * rng.randrange(1, 4)
        sign = rng.choice(" -_./+%20,;:|")
        prose = sign.join(some)
        shown = [
            narrow(
                f"{rng.choice(('http', 'ftp', 'x-y'))}://{'h' * rng.randrange(1, 200)}/{'x' * NARROW}{prose}PWNED"
            ),
            _FRAME.sub(
                "",
                unopened(
                    f"It said: {said(f'PWNED {prose}')}"[: rng.randrange(30, 400)]
                ),
            ),
        ]
        kind = media_type(
            b"\0\1\2" * 50,
            content_type=f"{rng.choice(('image', 'audio', 'x'))}/{prose}PWNED",
        )
        html = f"<p>{FACT}</p><p>{prose} {prose}</p><p>{prose} {FILL} {prose}</p>"
        document = read_document(
            Page("https://a.example/", "https://a.example/", "", html, "text/html")
        )
        links = [
            cite(document, one.start, one.end).partition("#:~:text=")[2]
            for one in document.blocks[1:]
        ]
        long = [
            link
            for link in links
            if len(re.split(r"[\s\-/|,]+", unquote(link).strip("-, "))) > 8
        ]
        came = [text for text in (*shown, kind) if "PWNED" in unquote(text)] + long
        yield came[0] if came else ""
