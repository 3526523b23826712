"""Bytes to text: labels as the web means them, wrong labels passed over, missing ones guessed."""

import codecs
import struct
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from errors import SourceUnreadable
from readers import read
from readers.page import Document
from tests.support.waiting import bounded

TEXTS = {
    "ja": "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。何でも薄暗い所で泣いていた。",
    "ko": "동해 물과 백두산이 마르고 닳도록 하느님이 보우하사 우리나라 만세. 무궁화 삼천리 화려 강산.",
    "zh": "北京是中华人民共和国的首都，是全国的政治中心、文化中心，是世界著名古都和现代化国际城市。",
    "tw": "臺北市是中華民國的首都，位於臺灣北部的臺北盆地，四周與新北市接壤，人口約二百五十萬。",
    "ru": "Все счастливые семьи похожи друг на друга, каждая несчастливая семья несчастлива "
    "по-своему.",
    "fr": "Longtemps, je me suis couché de bonne heure. Parfois, à peine ma bougie éteinte, mes "
    "yeux se fermaient…",
    "pl": "Litwo! Ojczyzno moja! ty jesteś jak zdrowie. Ile cię trzeba cenić, ten tylko się "
    "dowie, kto cię stracił.",
    "el": "Στην αρχή δημιούργησε ο Θεός τον ουρανό και τη γη. Η γη ήταν άμορφη και έρημη, και "
    "σκοτάδι στην άβυσσο.",
    "he": "בראשית ברא אלהים את השמים ואת הארץ והארץ היתה תהו ובהו וחשך על פני תהום",
    "th": "มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ",
}
# language, label as sites write it, codec that the bytes are in
LABELLED = [
    ("ja", "Shift_JIS", "cp932"),
    ("ja", "x-sjis", "cp932"),
    ("ja", "EUC-JP", "euc_jp"),
    ("ja", "ISO-2022-JP", "iso2022_jp"),
    ("ja", "UTF-8", "utf_8"),
    ("ko", "EUC-KR", "cp949"),
    ("ko", "ks_c_5601-1987", "cp949"),
    ("zh", "GB2312", "gb18030"),
    ("zh", "GBK", "gb18030"),
    ("zh", "gb18030", "gb18030"),
    ("tw", "Big5", "big5"),
    ("ru", "windows-1251", "cp1251"),
    ("ru", "KOI8-R", "koi8_r"),
    ("ru", "ISO-8859-5", "iso8859_5"),
    ("ru", "IBM866", "cp866"),
    ("fr", "ISO-8859-1", "cp1252"),
    ("fr", "latin1", "cp1252"),
    ("fr", "us-ascii", "cp1252"),
    ("fr", "windows-1252", "cp1252"),
    ("pl", "ISO-8859-2", "iso8859_2"),
    ("pl", "windows-1250", "cp1250"),
    ("el", "windows-1253", "cp1253"),
    ("el", "ISO-8859-7", "iso8859_7"),
    ("he", "windows-1255", "cp1255"),
    ("he", "ISO-8859-8-I", "iso8859_8"),
    ("th", "TIS-620", "cp874"),
]
UNLABELLED = [
    *(
        ("ja", "cp932"),
        ("ja", "euc_jp"),
        ("ja", "iso2022_jp"),
        ("ko", "cp949"),
        ("zh", "gb18030"),
        ("tw", "big5"),
    ),
    *(
        ("ru", "cp1251"),
        ("ru", "koi8_r"),
        ("fr", "cp1252"),
        ("pl", "cp1250"),
        ("el", "cp1253"),
        ("he", "cp1255"),
    ),
    *(("th", "cp874"), ("ja", "utf_8"), ("zh", "utf_8")),
]


def html_of(body: bytes, label: str = "") -> Document:
    """Return what bytes of HTML under a label say; without one the page names none."""
    return read(body, content_type=f'text/html; charset="{label}"' if label else "text/html")


def page(language: str, codec: str, head: str = "") -> bytes:
    text = TEXTS[language]
    lines = f"<html><head>{head}<title>t</title></head><body><p>{text}</p><p>1287</p><p>{text}</p></body></html>"
    return lines.encode(codec)


@pytest.mark.parametrize(("language", "label", "codec"), LABELLED)
def test_a_label_in_the_header_is_read_as_the_web_means_it(
    language: str, label: str, codec: str
) -> None:
    assert TEXTS[language] in html_of(page(language, codec), label).text


@pytest.mark.parametrize(("language", "label", "codec"), LABELLED)
def test_a_label_in_the_page_alone_is_enough(language: str, label: str, codec: str) -> None:
    body = page(
        language, codec, f'<meta http-equiv="Content-Type" content="text/html; charset={label}">'
    )
    assert TEXTS[language] in html_of(body).text
    assert TEXTS[language] in html_of(page(language, codec, f"<meta charset={label}>")).text


@pytest.mark.parametrize(("language", "codec"), UNLABELLED)
def test_without_a_label_the_encoding_is_detected(language: str, codec: str) -> None:
    assert TEXTS[language] in html_of(page(language, codec)).text


@pytest.mark.parametrize(
    ("language", "codec", "wrong"),
    [
        ("ja", "utf_8", "ISO-8859-1"),
        ("fr", "utf_8", "latin1"),
        ("ru", "cp1251", "UTF-8"),
        ("ja", "cp932", "UTF-8"),
        ("ja", "euc_jp", "UTF-8"),
        ("zh", "gb18030", "utf-8"),
        ("ko", "cp949", "UTF-8"),
        ("ja", "utf_8", "Shift_JIS"),
        ("zh", "utf_8", "EUC-KR"),
        ("fr", "cp1252", "utf-16"),
        ("ru", "cp1251", "no-such-charset"),
        ("ru", "cp1251", "utf-7"),
        ("fr", "utf_8", "unicode_escape"),
        ("fr", "utf_8", "rot13"),
        ("ja", "utf_8", "base64"),
        ("ru", "utf_8", "zlib"),
    ],
)
def test_a_label_that_the_bytes_contradict_is_passed_over(
    language: str, codec: str, wrong: str
) -> None:
    assert TEXTS[language] in html_of(page(language, codec), wrong).text


def test_a_label_that_the_bytes_contradict_is_said_beside_what_was_guessed() -> None:
    notes = " ".join(html_of(page("ru", "cp1251"), "UTF-8").page.notes)
    assert "labelled utf-8, which its bytes are not" in notes
    assert "guessed" in notes


def test_the_header_wins_over_the_page_and_the_mark_over_both() -> None:
    russian = page("ru", "cp1251", "<meta charset=koi8-r>")
    assert TEXTS["ru"] in html_of(russian, "windows-1251").text
    marked = codecs.BOM_UTF16_LE + page("ja", "utf_16_le")
    assert TEXTS["ja"] in html_of(marked, "windows-1251").text
    assert read(codecs.BOM_UTF8 + b"x", name="a.txt").text == "x"


@pytest.mark.parametrize(
    ("mark", "codec"), [(codecs.BOM_UTF16_LE, "utf_16_le"), (codecs.BOM_UTF16_BE, "utf_16_be")]
)
def test_utf_16_is_read_by_its_mark(mark: bytes, codec: str) -> None:
    assert TEXTS["ja"] in html_of(mark + page("ja", codec)).text


def test_utf_16_is_read_by_its_header_but_not_by_a_meta_that_could_not_stand_in_it() -> None:
    assert TEXTS["zh"] in html_of(page("zh", "utf_16_le"), "utf-16le").text
    assert TEXTS["zh"] in html_of(page("zh", "utf_8", "<meta charset=utf-16>")).text


@pytest.mark.parametrize("codec", ["utf_16_le", "utf_16_be"])
@pytest.mark.parametrize("label", ["", "UTF-8", "windows-1251", "utf-16"])
@pytest.mark.parametrize("language", TEXTS)
def test_utf_16_without_a_mark_is_read_whatever_a_label_says(
    language: str, label: str, codec: str
) -> None:
    document = html_of(page(language, codec), label)
    assert document.page.media_type == "text/html"
    assert TEXTS[language] in document.text


@pytest.mark.parametrize(
    "numbers",
    [
        struct.pack("<1000h", *(200 + n * 7919 % 251 for n in range(1000))),
        struct.pack(">1000H", *(32 + n * 31 % 900 for n in range(1000))),
        bytes(n * 7919 % 251 for n in range(3000)),
    ],
)
def test_tables_of_small_numbers_are_no_utf_16_text(numbers: bytes) -> None:
    with pytest.raises(SourceUnreadable, match="cannot be read as text"):
        read(numbers)


BODIES = {
    "tags": b"<",
    "open tag": b"<a ",
    "meta": b"<meta charset",
    "escapes": b"\x1b$",
    "high bytes": bytes(range(128, 256)),
    "zeros": b"\x00a",
    "lead bytes": b"\x81\x8f\xfe\xff",
    "broken utf-8": b"\xc3(",
}


@pytest.mark.parametrize("name", BODIES)
def test_decoding_takes_time_in_line_with_the_length(name: str) -> None:
    body = BODIES[name] * (6_400_000 // len(BODIES[name]))
    with bounded(), suppress(SourceUnreadable):
        read(body, content_type="text/plain; charset=shift_jis")


def test_an_xml_declaration_counts() -> None:
    body = f'<?xml version="1.0" encoding="EUC-JP"?><html><p>{TEXTS["ja"]}</p></html>'.encode(
        "euc_jp"
    )
    assert TEXTS["ja"] in html_of(body).text


def test_one_broken_byte_does_not_turn_a_page_into_another_encoding() -> None:
    body = page("ja", "utf_8")
    cut = body[:-30] + b"\xff" + body[-30:]
    document = html_of(cut, "utf-8")
    assert TEXTS["ja"] in document.text
    assert document.page.notes == ()


def test_a_guess_is_said_to_be_one() -> None:
    assert "guessed" in " ".join(html_of(page("ru", "cp1251")).page.notes)
    assert html_of(page("ru", "utf_8")).page.notes == ()


@given(st.binary(max_size=3000), st.text(max_size=60))
def test_no_bytes_and_no_label_raise(body: bytes, label: str) -> None:
    with suppress(SourceUnreadable):
        assert isinstance(html_of(body, label).text, str)


@given(
    st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=500)
)
def test_utf_8_comes_back_as_it_was_under_its_own_label(text: str) -> None:
    body = text.encode()
    if not body.startswith((codecs.BOM_UTF8, codecs.BOM_UTF16_BE, codecs.BOM_UTF16_LE)):
        found = read(b"x " + body, content_type="text/plain; charset=utf-8").text
        assert found == f"x {text}"
