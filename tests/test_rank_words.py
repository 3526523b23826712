"""Index terms, in every script that the product meets."""

import pytest

from pipeline.document.units import split_sentences
from pipeline.text.words import (
    guess_language,
    index_terms,
    is_cjk,
    languages,
    raw_words,
    whole_words,
    words,
)
from tests.support import ROOT


def test_words_are_lowercased_stemmed_and_freed_of_stop_words() -> None:
    assert index_terms("The Ferries were running on the lakes") == ["ferri", "run", "lake"]


def test_order_and_repeats_are_kept_also_where_scripts_mix() -> None:
    assert index_terms("Tokyo 東京都 tower Tokyo") == ["tokyo", "東京", "京都", "tower", "tokyo"]


def test_accents_and_widths_make_no_difference() -> None:
    assert index_terms("Café ＮＡＶＩ ２０２６", language="fr") == index_terms(
        "cafe navi 2026", language="fr"
    )


@pytest.mark.parametrize(
    ("language", "composed", "decomposed"),
    [("es", "ratón", "rato\u0301n"), ("vi", "tiếng", "tie\u0302\u0301ng"), ("ar", "كتاب", "كِتَاب")],
)
def test_a_word_is_one_however_its_accents_are_written(
    language: str, composed: str, decomposed: str
) -> None:
    (term,) = index_terms(composed, language=language)
    assert index_terms(decomposed, language=language) == [term]


@pytest.mark.parametrize("word", ["किताब", "கிதாப்", "কিতাব", "పుస్తకం", "සිංහල"])
def test_vowel_signs_belong_to_their_word(word: str) -> None:
    assert len(index_terms(f"{word} 12")) == 2
    assert raw_words(f"{word}, {word}") == [word, word]


def test_an_elided_article_goes_and_its_word_stays() -> None:
    assert index_terms("l'eau d’Orvane", language="fr") == ["eau", "orvan"]
    assert index_terms("the dog's bowl", language="en") == ["dog", "bowl"]


def test_russian_endings_with_short_i_are_stemmed_alike() -> None:
    one, other = index_terms("русский", language="ru"), index_terms("русская", language="ru")
    assert one == other == ["русск"]


def test_half_width_katakana_reads_like_full_width() -> None:
    assert index_terms("ﾌｪﾘｰ") == index_terms("フェリー") != []


def test_a_single_han_character_is_a_term_of_its_own() -> None:
    assert index_terms("水 tank") == ["水", "tank"]


def test_question_pairs_of_japanese_and_chinese_are_stop_words_unless_asked_for() -> None:
    assert "です" not in index_terms("料金です")
    assert "什么" not in index_terms("什么湖")
    assert "です" in index_terms("料金です", keep_stop_words=True)


def test_text_of_stop_words_alone_gives_terms_when_they_are_kept() -> None:
    assert index_terms("to be or not to be") == []
    assert index_terms("to be or not to be", keep_stop_words=True) == [
        "to",
        "be",
        "or",
        "not",
        "to",
        "be",
    ]


def test_an_unknown_language_is_treated_like_english() -> None:
    assert index_terms("the running ferries", language="xx") == index_terms(
        "the running ferries", language="en"
    )


def test_underscores_part_words_and_figures_stay_whole() -> None:
    assert index_terms("max_bytes 2400 v2") == ["max", "byte", "2400", "v2"]


def test_raw_words_keep_case_and_accents() -> None:
    assert raw_words("Das Café, 2 Ufer: 湖岸") == ["Das", "Café", "2", "Ufer", "湖岸"]


def test_only_text_with_han_kana_or_hangul_counts_as_cjk() -> None:
    assert is_cjk("see 湖") and is_cjk("フェリー") and is_cjk("호수")
    assert not is_cjk("Größe, мир")


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("How deep is the lake at its deepest point?", "en"),
        ("Wie warm war das Wasser am Strandbad?", "de"),
        ("Quelle est la durée de la traversée ?", "fr"),
        ("¿Cuánto cuesta el billete de ida y vuelta?", "es"),
        ("Quanto costa il biglietto per la nave?", "it"),
        ("Quanto custa uma passagem para a ilha?", "pt"),
        ("Hoeveel kost een kaartje voor de boot?", "nl"),
        ("Сколько стоит билет на паром?", "ru"),
        ("Скільки коштує квиток на пором і коли він їде?", "uk"),
        ("フェリーの料金はいくらですか", "ja"),
        ("渡轮的票价是多少？", "zh"),
        ("페리 요금은 얼마입니까?", "ko"),
        ("Πόσο κοστίζει το εισιτήριο;", "el"),
        ("كم سعر التذكرة؟", "ar"),
        ("Compare Rust vs Go", ""),
        ("1234 5678", ""),
        ("Let α be the angle of the mast", "en"),
    ],
)
def test_the_language_of_a_short_request_is_guessed_or_left_open(text: str, language: str) -> None:
    assert guess_language(text) == language


@pytest.mark.parametrize("language", languages())
def test_the_words_of_a_language_stand_in_known_sections_and_once_each(language: str) -> None:
    path = ROOT / "pipeline" / "text" / "words" / f"{language}.txt"
    lines = [
        line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#")
    ]
    sections = [line.strip("[]") for line in lines if line.startswith("[")]
    assert len(sections) == len(set(sections))
    for section in sections:
        assert words(section, language), section
        lowered = section not in ("starters", "names.roles", "about", "months")
        assert not lowered or all(entry == entry.lower() for entry in words(section, language)), (
            section
        )


def test_words_of_all_languages_are_those_of_each_and_an_unknown_language_has_none() -> None:
    assert words("stop") >= words("stop", "de") | words("stop", "ja")
    assert words("stop", "xx") == words("no such section") == frozenset()


def test_whole_words_are_not_found_inside_others_where_a_script_has_blanks() -> None:
    pattern = whole_words({"up to date", "date", "今天", "오늘"})
    assert pattern.findall("updated up  to date, date; 我今天去 오늘은") == [
        "up  to date",
        "date",
        "今天",
        "오늘",
    ]
    assert whole_words(()).search("anything") is None


@pytest.mark.parametrize(
    "text",
    [
        "Il sig. Rossi e la dott.ssa Bianchi partono alle nove.",
        "Cfr. pag. 12 del manuale.",
        "O barco do Sr. Silva parte na av. Central, aprox. às nove.",
        "De heer en mevr. Jansen nemen bijv. Lijn 2 naar blz. 4.",
        "Według dr. inż. Nowaka prom, tzn. Linia 2, odpływa z ul. Portowej.",
    ],
)
def test_abbreviations_of_more_languages_end_no_sentence(text: str) -> None:
    assert split_sentences(text) == [(0, len(text))]
