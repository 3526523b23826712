"""Questions of several parts, each read and reported for itself, and hops from what was found to
what it names."""

import json
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from papers.zero_index.parser import parse
from pipeline.question.parts import MOST_PARTS
from pipeline.question.question import Question
from pipeline.text.words import languages
from tests.support import Connect, Site, data_of, text_of
from tests.test_papers_parser import GOOD, TODAY, Scripted

FILLER = "".join(
    f"<p>Note {n}: the weather of that day was mild, with birds over the water.</p>"
    for n in range(40)
)
LIGHT = "The harbour light of Orvane was built in 1871 by the brothers Marr."
FERRY = "A ticket for the ferry to Quoxholm costs 12 crowns."
PAGE = (
    f"<title>Orvane</title><h2>The "
    f"light</h2><p>{LIGHT}</p>{FILLER}<h2>Fares</h2><p>{FERRY}</p>{FILLER}"
)

IN_EVERY_LANGUAGE = {
    "ar": (
        "كم عدد سكان المدينة وما هي مساحتها؟",
        "قارن بين بطارية Nordia و Velmo",
        "ما هي أسباب ونتائج الحرب؟",
    ),
    "cs": (
        "Jak vysoký je most a kdo ho navrhl?",
        "Který je tišší, Nordia nebo Velmo?",
        "Které děti a dospělí jedí zdarma?",
    ),
    "da": (
        "Hvad koster kurset, og er der plads til begyndere?",
        "Hvilken er hurtigst, Nordia eller Velmo?",
        "Hvilke børn og voksne må spise gratis?",
    ),
    "de": (
        "Wie hoch ist die Brücke, und wer hat sie entworfen?",
        "Welches Gerät ist leiser, Nordia oder Velmo?",
        "Welche Kinder und Erwachsenen essen kostenlos?",
    ),
    "en": (
        "How tall is the bridge, and who designed it?",
        "What is the difference between Nordia and Velmo batteries?",
        "Which children and adults eat for free?",
    ),
    "es": (
        "¿Qué altura tiene el puente y quién lo diseñó?",
        "¿Cuál es más silencioso, Nordia o Velmo?",
        "¿Qué niños y adultos comen gratis?",
    ),
    "fi": (
        "Mitä kurssi maksaa ja onko tilaa aloittelijoille?",
        "Mitä eroa on Nordia ja Velmo akuilla?",
        "Mitkä lapset ja aikuiset syövät ilmaiseksi?",
    ),
    "fr": (
        "Quelle est la hauteur du pont et qui l'a dessiné ?",
        "Lequel est le plus silencieux, Nordia ou Velmo ?",
        "Quels enfants et adultes mangent gratuitement ?",
    ),
    "hu": (
        "Milyen magas a híd, és ki tervezte?",
        "Melyik a csendesebb, Nordia vagy Velmo?",
        "Mely gyermekek és felnőttek esznek ingyen?",
    ),
    "it": (
        "Quanto è alto il ponte e chi l'ha progettato?",
        "Quale è più silenzioso, Nordia o Velmo?",
        "Quali bambini e adulti mangiano gratis?",
    ),
    "ja": (
        "橋の高さはどのくらいで、誰が設計しましたか？",
        "東京と大阪の人口の違いは？",
        "ヒートポンプの長所と短所は何ですか？",
    ),
    "ko": (
        "다리의 높이는 얼마이며 누가 설계했습니까?",
        "서울과 부산의 인구 차이는 얼마입니까?",
        "열펌프의 장점과 단점은 무엇입니까?",
    ),
    "nl": (
        "Hoe hoog is de brug en wie heeft hem ontworpen?",
        "Welke is stiller, Nordia of Velmo?",
        "Welke kinderen en volwassenen eten gratis?",
    ),
    "no": (
        "Hva koster kurset, og er det plass til nybegynnere?",
        "Hvilken er raskest, Nordia eller Velmo?",
        "Hvilke barn og voksne spiser gratis?",
    ),
    "pl": (
        "Jak wysoki jest most i kto go zaprojektował?",
        "Który jest cichszy, Nordia czy Velmo?",
        "Które dzieci i dorośli jedzą za darmo?",
    ),
    "pt": (
        "Qual é a altura da ponte e quem a projetou?",
        "Qual é mais silencioso, Nordia ou Velmo?",
        "Que crianças e adultos comem de graça?",
    ),
    "ro": (
        "Cât de înalt este podul și cine l-a proiectat?",
        "Care este mai silențios, Nordia sau Velmo?",
        "Ce copii și adulți mănâncă gratis?",
    ),
    "ru": (
        "Какова высота моста и кто его спроектировал?",
        "Что тише, Nordia или Velmo?",
        "Как иначе называется огневая коробка или отделение двигателя?",
    ),
    "sv": (
        "Vad kostar kursen och finns det plats för nybörjare?",
        "Vilken är tystast, Nordia eller Velmo?",
        "Vilka barn och vuxna äter gratis?",
    ),
    "tr": (
        "Köprünün yüksekliği nedir ve kim tasarladı?",
        "Nordia ve Velmo arasındaki fark nedir?",
        "Hangi çocuklar ve yetişkinler ücretsiz yiyor?",
    ),
    "uk": (
        "Коли відкривається музей і чи можна купити квитки на вході?",
        "Що тихіше, Nordia чи Velmo?",
        "Які діти та дорослі їдять безкоштовно?",
    ),
    "vi": (
        "Cây cầu cao bao nhiêu và ai đã thiết kế nó?",
        "Sự khác biệt giữa Nordia và Velmo là gì?",
        "Những trẻ em và người lớn nào được ăn miễn phí?",
    ),
    "zh": (
        "桥有多高，还有是谁设计的？",
        "北京和上海的人口有什么区别？",
        "鼠疫的第一个变体如何以及何时进入欧洲？",
    ),
}
"""Two questions joined, two things compared, and one question."""


def parts_of(question: str) -> list[str]:
    return [part.text for part in Question(question).parts]


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        (
            "Who founded SpaceX and when did it launch Falcon 9?",
            ["Who founded SpaceX", "when did it launch Falcon 9? (Who founded SpaceX)"],
        ),
        (
            "How deep is Lake Orvane? Which fish live in the harbour?",
            ["How deep is Lake Orvane?", "Which fish live in"],
        ),
        (
            "In which city is the mill, and do I get a ticket at the gate?",
            ["In which city is the mill", "do I get a"],
        ),
        (
            "Which camera models do Judyann and Scuba Bill own?",
            ["Which camera models do Judyann own?", "Which camera"],
        ),
        (
            "Was kostet die Fähre nach Quoxholm und wann fährt das letzte Schiff?",
            ["Was kostet die Fähre", "wann fährt"],
        ),
        (
            "Qui a construit le phare et combien coûte le billet du bateau ?",
            ["Qui a construit le phare", "combien coûte"],
        ),
        (
            "¿Quién construyó el faro y cuánto cuesta el billete del barco?",
            ["¿Quién construyó el faro", "cuánto cuesta"],
        ),
        (
            "Chi ha costruito il faro e quanto costa il biglietto del traghetto?",
            ["Chi ha costruito", "quanto costa"],
        ),
        (
            "Wie bouwde de vuurtoren en hoeveel kost een kaartje voor de boot?",
            ["Wie bouwde", "hoeveel kost"],
        ),
        (
            "Кто построил маяк и сколько стоит билет на паром?",
            ["Кто построил маяк", "сколько стоит"],
        ),
        (
            "灯台は誰が建てましたか？切符の値段はいくらですか？",
            ["灯台は誰が建てましたか？", "切符の値段は"],
        ),
        ("灯塔是谁建造的，船票多少钱？", ["灯塔是谁建造的", "船票多少钱"]),
        (
            "How do I read a table in Python, in R, and in the sqlite3 shell?",
            [
                "How do I read a table in Python?",
                "How do I read a table in R?",
                "How do I read a table in the sqlite3 shell?",
            ],
        ),
        (
            "Was kostet die Fahrt am Montag, am Freitag und am Sonntag?",
            ["Was kostet die Fahrt am Montag?", "Was kostet die Fahrt am Freitag?", "Was kostet"],
        ),
        (
            "1. When was the light built?\n2. What does a ticket cost?",
            ["When was the light built?", "What does a ticket"],
        ),
    ],
)
def test_a_question_is_cut_into_what_must_be_answered(question: str, parts: list[str]) -> None:
    cut = parts_of(question)
    assert len(cut) == len(parts)
    assert all(found.startswith(wanted) for found, wanted in zip(cut, parts, strict=True)), cut


@pytest.mark.parametrize("language", sorted(IN_EVERY_LANGUAGE))
def test_every_language_of_the_word_tables_is_cut_at_its_own_words(language: str) -> None:
    joined, compared, one = IN_EVERY_LANGUAGE[language]
    assert len(parts_of(joined)) == 2
    sides = parts_of(compared)
    assert len(sides) == 2
    assert all(len(part) < len(compared) for part in sides), sides
    assert not parts_of(one)


def test_no_language_of_the_word_tables_was_forgotten() -> None:
    assert set(IN_EVERY_LANGUAGE) == set(languages())


@pytest.mark.parametrize(
    "question",
    [
        "Compare the noise of Nordia, Velmo and Prask.",
        "Which is the quietest: Nordia, Velmo or Prask?",
        "Which of Nordia, Velmo, and Prask has the longest battery life?",
    ],
)
def test_a_comparison_of_several_has_a_part_for_each(question: str) -> None:
    parts = parts_of(question)
    assert [[name for name in ("Nordia", "Velmo", "Prask") if name in part] for part in parts] == [
        ["Nordia"],
        ["Velmo"],
        ["Prask"],
    ]


@pytest.mark.parametrize(
    "question",
    [
        "What are the pros and cons of heat pumps?",
        "Which machine survives a brief blackout and has a 13-hour timer?",
        "Can I cancel when it rains and when it snows?",
        "Which songs do people sing who sail and who row?",
        "Who wrote War and Peace?",
        "How do rock and roll and jazz dancers turn?",
        "Who argued that the composer knew no folk music, and why?",
        "Which two reviewers were looked after by the same technicians, Martin and Austin?",
        "Der Preis von Brot und Butter in Wien?",
        "I live in Orvane. It rains a lot. What does the ferry cost?",
        "Which of these is cheapest:\n- the ferry to Quoxholm\n- the bus to Skellmouth",
        "",
    ],
)
def test_a_question_that_is_one_stays_whole(question: str) -> None:
    assert parts_of(question) == []


def test_no_question_of_a_long_list_is_lost() -> None:
    cut = parts_of(
        "Answer:\n" + "\n".join(f"{n}. What is the {n}th lake of Tarnholt?" for n in range(1, 20))
    )
    assert len(cut) == MOST_PARTS
    assert "19th lake" in cut[-1]


@pytest.mark.anyio
async def test_a_generator_names_parts_that_rules_miss_and_none_from_elsewhere() -> None:
    question = "Tell me the founder of Quoxholm, the price of its ferry."
    for said, kept in (
        (["Who is the founder of Quoxholm?", "What is the price of the ferry to Quoxholm?"], 2),
        (["Who is the founder of Quoxholm?", "How are you?"], 0),
        (["Who is the founder of Quoxholm?"], 0),
    ):
        answer = GOOD | {"parts": said, "queries": [{"text": "Quoxholm founder", "language": "en"}]}
        model = Scripted(json.dumps(answer))
        found = await parse(Question(question), model, None, 30.0, today=TODAY)
        assert len(found.parts) == kept
        assert all(any(part.text == query.text for query in found.queries) for part in found.parts)


async def ask(client: Client, tool: str, question: str, **more: Any) -> tuple[str, dict[str, Any]]:
    result = await client.call_tool(tool, {"question": question, **more})
    assert not result.is_error, text_of(result)
    return text_of(result), data_of(result)


@pytest.mark.anyio
@pytest.mark.parametrize("budget", [200, 400, 1000])
async def test_both_parts_are_shown_and_separated(
    connect: Connect, tmp_path: Path, budget: int
) -> None:
    (tmp_path / "page.html").write_text(PAGE, encoding="utf-8")
    question = (
        "When was the harbour light of Orvane built, and what does a ticket for the ferry "
        "to Quoxholm cost?"
    )
    async with connect(
        folders=str(tmp_path), embedder="none", reader="none", seconds="120"
    ) as client:
        for tool, more in (("extract_relevant", {"sources": ["page.html"]}), ("research", {})):
            text, data = await ask(client, tool, question, max_tokens=budget, **more)
            assert LIGHT in text
            assert FERRY in text
            assert data["tokens"] <= budget
            assert [part["verdict"] for part in data["parts"]] == ["answered", "answered"]
            assert all(f"({part['label'][1]})" in text for part in data["parts"])
            assert budget < 400 or 'Parts: "When was the harbour light' in text
        pruned = await client.call_tool(
            "fetch_and_prune_html",
            {"question": question, "sources": ["page.html"], "max_tokens": budget},
        )
        assert LIGHT in text_of(pruned)
        assert FERRY in text_of(pruned)


@pytest.mark.anyio
async def test_answered_means_every_part(connect: Connect, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(PAGE, encoding="utf-8")
    question = (
        "When was the harbour light of Orvane built? Which zquorvex won the Tarnholt curling medal?"
    )
    async with connect(
        folders=str(tmp_path), embedder="none", reader="none", seconds="120"
    ) as client:
        text, data = await ask(
            client, "extract_relevant", question, sources=["page.html"], max_tokens=600
        )
    assert data["verdict"] == "unsure"
    assert not data["answered"]
    assert [part["verdict"] for part in data["parts"]] == ["answered", "none"]
    assert "not found" in text
    assert LIGHT in text


@pytest.mark.anyio
async def test_parts_that_nothing_answers_name_no_passage(connect: Connect, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(PAGE, encoding="utf-8")
    question = "Which zquorvex won the curling medal? Who painted the xylbrant of Quimbar?"
    async with connect(folders=str(tmp_path), embedder="none", reader="none") as client:
        text, data = await ask(client, "extract_relevant", question, sources=["page.html"])
    assert [part["verdict"] for part in data["parts"]] == ["none", "none"]
    assert "[10a]" not in text


@pytest.mark.anyio
async def test_a_question_that_is_one_has_no_parts_in_its_answer(
    connect: Connect, tmp_path: Path
) -> None:
    (tmp_path / "page.html").write_text(PAGE, encoding="utf-8")
    async with connect(
        folders=str(tmp_path), embedder="none", reader="none", seconds="120"
    ) as client:
        text, data = await ask(client, "research", "When was the harbour light of Orvane built?")
    assert "parts" not in data
    assert "Parts:" not in text
    assert "Follow-up search" not in text


FILM = (
    f"<title>Tarnholt</title><p>The film that was shot in Tarnholt in 1986 is Midnight "
    f"Ferry.</p>{FILLER}"
)
DIRECTOR = f"<title>Midnight Ferry</title><p>Midnight Ferry was directed by Ada Quill.</p>{FILLER}"
BRIDGE = "Who directed the film that was shot in Tarnholt in 1986?"


@pytest.mark.anyio
async def test_what_the_nearest_passage_names_is_asked_about(
    connect: Connect, tmp_path: Path
) -> None:
    (tmp_path / "tarnholt.html").write_text(FILM, encoding="utf-8")
    (tmp_path / "midnight.html").write_text(DIRECTOR, encoding="utf-8")
    for number in range(4):
        other = (
            f"<title>Town {number}</title><p>The film festival of 1986 in town {number} was "
            f"directed well.</p>{FILLER}"
        )
        (tmp_path / f"town{number}.html").write_text(other, encoding="utf-8")
    async with connect(
        folders=str(tmp_path), embedder="none", reader="none", seconds="120"
    ) as client:
        text, data = await ask(client, "research", BRIDGE, max_tokens=600, max_pages=1)
    assert "Ada Quill" in text
    assert "Follow-up search from [" in text
    assert any(query.startswith("Midnight Ferry") for query in data["queries"])
    assert data["tokens"] <= 600


@pytest.mark.anyio
async def test_a_file_of_ones_own_sends_no_one_to_an_address_that_it_links(
    connect: Connect, tmp_path: Path, site: Site
) -> None:
    site.pages["/film"] = (200, {"Content-Type": "text/html"}, DIRECTOR.encode())
    linked = FILM.replace("Midnight Ferry", f'<a href="{site.url("/film")}">Midnight Ferry</a>')
    (tmp_path / "tarnholt.html").write_text(linked, encoding="utf-8")
    async with connect(
        folders=str(tmp_path), embedder="none", reader="none", seconds="120", allow_loopback="1"
    ) as client:
        await ask(client, "research", BRIDGE)
    assert site.asked == []
