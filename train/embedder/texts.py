"""Two hundred varied texts on which the 8-bit model is held against the float32 one.

Written for this project or made from its own word list by a seeded draw: prose of 1 to 250 words, accents, other
scripts, code, tables, addresses, numbers, emoji, empty. Not for: retrieval quality (bench/).
"""

import random
from typing import Final

COUNT: Final = 200
_LENGTHS: Final = (1, 2, 3, 5, 8, 12, 18, 25, 40, 60, 90, 130, 180, 250)

_FIXED: Final = (
    "",
    " ",
    "a",
    "Yes.",
    "42",
    "2026-11-21T08:30:00Z",
    "3.14159, 2.71828; 1.41421",
    "+49 30 901820, room 4.12",
    "https://example.org/docs/v2/install?lang=en#linux",
    "winnow-mcp>=0.1,<1 ; python_version >= '3.11'",
    "What is the tallest lighthouse on the northern coast?",
    "who wrote the report on river levels in 1998",
    "Café déjà vu: à Noël, l'été où l'âne s'en alla très loin.",
    "Die Züge fahren werktags um 6:05, 7:35 und 9:05 Uhr über Köln nach Münster; sonntags gilt der Ferienplan.",
    "El niño llegó tarde a la reunión porque el autobús se averió cerca del puerto.",
    "Zażółć gęślą jaźń, a potem wróć do domu przez ośnieżone wzgórza.",
    "İstanbul'da yağmur yağıyor; vapurlar öğleden sonra çalışmayacak.",
    "Thời tiết hôm nay đẹp, chúng tôi đi bộ dọc bờ sông.",
    "灯台は岬の先に立ち、夜ごとに二回ずつ光る。",
    "港口每天早上六点开放，渔船在日出之前出海。",
    "항구는 매일 아침 여섯 시에 문을 연다.",
    "Маяк стоит на мысу с 1872 года и виден за двадцать миль.",
    "المنارة قائمة عند مدخل الميناء منذ زمن طويل.",
    "מגדלור ישן ניצב בקצה המזח.",
    "दीपस्तंभ बंदरगाह के किनारे खड़ा है।",
    "ประภาคารตั้งอยู่ที่ปลายแหลม",
    "Ο φάρος φαίνεται από μακριά τη νύχτα.",
    "🎉🎉 shipped! 🚀 see the notes 👇🏽",
    "🌊⛵️🐟",
    "def mean(values: list[float]) -> float:\n    if not values:\n        raise ValueError\n    return sum(values)",
    'for (const row of rows) { if (!row.ok) { console.warn("skipped", row.id); continue; } total += row.amount; }',
    "SELECT station, avg(level) FROM readings WHERE taken >= '2024-01-01' GROUP BY station ORDER BY 2 DESC LIMIT 10;",
    '#include <stdio.h>\nint main(void) { for (int i = 0; i < 3; i++) printf("%d\\n", i); return 0; }',
    "$ curl -sS --retry 3 -o out.tar.gz https://example.org/out.tar.gz && tar xzf out.tar.gz",
    '{"name": "harbour", "depth_m": 7.5, "berths": [1, 2, 3], "open": true, "notes": null}',
    "| station | height | built |\n|---|---|---|\n| North Head | 31 m | 1872 |\n| Salt Point | 18 m | 1904 |",
    "Model  Weight  Battery  Price\nA2     1.1 kg  14 h     899\nB4     1.4 kg  21 h     1 149",
    "- keep the receipt\n- send the form within 30 days\n- wait for the letter",
    "<table><tr><th>Line</th><td>S7</td></tr><tr><th>Every</th><td>20 min</td></tr></table>",
    "\\frac{d}{dx} e^{-x^2} = -2x e^{-x^2}, \\quad x \\in \\mathbb{R}",
    "E = mc², ∑ᵢ xᵢ ≤ ∞, 5 µm ± 0.2 µm, −40 °C",
    "THE BOARD HEREBY RESOLVES THAT ALL PRIOR RESOLUTIONS IN CONFLICT ARE RESCINDED.",
    "lol idk tbh, its prob fine?? brb",
    "Traceback (most recent call last):\n  File \"app.py\", line 12, in <module>\nKeyError: 'station'",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "no no no no no no no no no no no no no no no no",
    "Home › Products › Lamps › Desk lamps | Sign in | Basket (0) | Cookies | Imprint",
    "The drug lowered systolic pressure by 7.4 mmHg (95 % CI 5.1 to 9.7; p < 0.001) in 412 patients.",
    "\u200bzero\u200dwidth\ufeff and soft\u00adhyphens",
    "N/A",
)

_LIST: Final = (
    "the a an this that these some every no its their our his her of in on at by for from with without under over "
    "between through after before during against about and or but because although while if when where who which what "
    "is are was were has had will would can could should may must did does lighthouse harbour keeper storm signal ship "
    "captain tide chart river bridge engineer steel concrete load survey report council budget vote mayor tax school "
    "teacher pupil exam grade language grammar novel author chapter critic prize film director scene actor stage music "
    "orchestra violin melody rhythm recipe flour butter oven minute litre kitchen market price supply demand bank "
    "interest loan inflation wage union strike factory machine battery voltage current circuit sensor software "
    "compiler memory thread server request cache protocol packet network key password attack update patch release "
    "database query index table row column vector model training error gradient protein enzyme cell membrane gene "
    "mutation virus vaccine trial patient dose doctor hospital nurse fever infection climate rainfall glacier forest "
    "soil carbon emission solar wind turbine grid planet orbit telescope star galaxy mission rocket astronaut treaty "
    "border army minister election parliament court judge verdict appeal contract clause tenant landlord rent house "
    "garden tree apple bird migration nest predator ocean coral fish net island village church castle king battle "
    "century museum painting sculpture colour light shadow train station ticket delay platform passenger airport "
    "runway pilot goal team coach season league injury record marathon winner small large old new early late quick "
    "slow rare common cheap costly safe dangerous bright dark quiet loud first second last several hundred thousand "
    "million percent north south east west measured reported built sold moved found lost raised reduced opened closed "
    "compared explained refused agreed began ended grew fell remained became showed required allowed prevented"
)
_WORDS: Final = tuple(_LIST.split())


def varied_texts() -> list[str]:
    """Return the 200 texts, always the same ones in the same order; the longest go past 250 tokens."""
    drawn = _drawn(random.Random(20261121), COUNT - len(_FIXED))
    return [*_FIXED, *drawn]


def calibration_texts() -> list[str]:
    """Return other texts, drawn anew, on which the sizes of activations are taken before quantising."""
    return _drawn(random.Random(7), 100)


def _drawn(draw: random.Random, count: int) -> list[str]:
    return [_punctuate(draw.choices(_WORDS, k=_LENGTHS[number % len(_LENGTHS)]), draw) for number in range(count)]


def _punctuate(words: list[str], draw: random.Random) -> str:
    written = [words[0].capitalize()]
    for word in words[1:]:
        ends = written[-1].endswith(".")
        mark = draw.choices(["", ",", ".", f" {draw.randrange(3000)}"], weights=[80, 8, 8, 4])[0]
        written.append((word.capitalize() if ends else word) + mark)
    return " ".join(written).rstrip(".,") + "."
