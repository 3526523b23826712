"""Pages and questions in other languages than English: what answers is shown, None is said where
nothing does."""

from pathlib import Path

import pytest

from tests.support import Connect, data_of, text_of

pytestmark = [pytest.mark.slow, pytest.mark.anyio]

PAGES = {
    "ru": (
        "Музей открыт со вторника по воскресенье с десяти до шести часов. "
        "Взрослые платят за вход девять крон, дети вдвое меньше. "
        "Паром к острову отходит от северного причала каждый час. "
        "Собак в залы не пускают, но во дворе для них есть вода."
    ),
    "zh": (
        "博物馆周二至周日上午十点至下午六点开放。成人票价为九克朗，儿童半价。"
        "前往岛屿的渡轮每小时从北码头出发。展厅内禁止带狗，但院子里备有饮水。"
    ),
    "hi": (
        "संग्रहालय मंगलवार से रविवार तक सुबह दस बजे से शाम छह बजे तक खुला रहता है। "
        "वयस्कों के लिए प्रवेश शुल्क नौ क्रोन है और बच्चों के लिए आधा। "
        "द्वीप के लिए नौका हर घंटे उत्तरी घाट से निकलती है। "
        "कुत्तों को कमरों में लाना मना है, पर आँगन में उनके लिए पानी है।"
    ),
    "th": (
        "พิพิธภัณฑ์เปิดวันอังคารถึงวันอาทิตย์ ตั้งแต่สิบโมงเช้าถึงหกโมงเย็น "
        "ผู้ใหญ่จ่ายค่าเข้าชมเก้าโครน เด็กจ่ายครึ่งราคา "
        "เรือข้ามฟากไปเกาะออกจากท่าเรือเหนือทุกชั่วโมง "
        "ห้ามนำสุนัขเข้าห้องจัดแสดง แต่มีน้ำให้สุนัขในลานบ้าน"
    ),
}
PRICE = {
    "ru": ("Сколько стоит вход для взрослых?", "девять крон"),
    "zh": ("成人票价是多少？", "九克朗"),
    "hi": ("वयस्कों के लिए प्रवेश शुल्क कितना है?", "नौ क्रोन"),
    "th": ("ผู้ใหญ่จ่ายค่าเข้าชมเท่าไร", "เก้าโครน"),
}
UNRELATED = {
    "ru": "Какой фермент расщепляет лактозу?",
    "zh": "哪种酶分解乳糖？",
    "hi": "लैक्टोज़ को कौन सा एंजाइम तोड़ता है?",
    "th": "เอนไซม์ใดย่อยแลคโตส",
}


def _page(folder: Path, language: str, declared: str = "") -> str:
    path = folder / f"{language}.html"
    head = f'<!DOCTYPE html><html lang="{declared or language}"><meta charset="utf-8">'
    path.write_text(f"{head}<p>{PAGES[language]}</p>", encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("language", PAGES)
async def test_what_answers_is_shown_and_none_is_said_where_nothing_does(
    connect: Connect, tmp_path: Path, language: str
) -> None:
    source = _page(tmp_path, language)
    question, answer = PRICE[language]
    async with connect(folders=str(tmp_path), seconds="300") as client:
        asked = {"question": question, "sources": [source], "max_tokens": 200}
        shown = await client.call_tool("extract_relevant", asked)
        assert answer in text_of(shown)
        assert data_of(shown)["verdict"] != "none"

        lost = await client.call_tool("extract_relevant", asked | {"question": UNRELATED[language]})
        assert data_of(lost)["verdict"] == "none"


@pytest.mark.parametrize("language", ["zh", "hi", "th"])
async def test_a_page_of_another_language_is_none_where_it_is_far_from_the_question(
    connect: Connect, tmp_path: Path, language: str
) -> None:
    source = _page(tmp_path, language)
    asked = {"sources": [source], "max_tokens": 200}
    async with connect(folders=str(tmp_path), seconds="300") as client:
        near = await client.call_tool(
            "extract_relevant", asked | {"question": "How much do adults pay to get in?"}
        )
        assert data_of(near)["verdict"] != "none"
        far = await client.call_tool(
            "extract_relevant", asked | {"question": "When did the Roman empire fall?"}
        )
        assert data_of(far)["verdict"] == "none"


async def test_a_template_that_says_english_around_russian_text_changes_nothing(
    connect: Connect,
    tmp_path: Path,
) -> None:
    source = _page(tmp_path, "ru", declared="en")
    asked = {"question": UNRELATED["ru"], "sources": [source], "max_tokens": 200}
    async with connect(folders=str(tmp_path), seconds="300") as client:
        said = data_of(await client.call_tool("extract_relevant", asked))
    assert said["verdict"] == "none"
    assert "another language" not in said["reason"]


async def test_a_question_in_romanian_is_no_english_one(connect: Connect, tmp_path: Path) -> None:
    page = tmp_path / "poem.html"
    page.write_text(
        '<html lang="en"><p>After the massacre of 1819 the poet Percy Shelley wrote The Mask of '
        "Anarchy. It begins with images of what he thought the unjust forms of authority.</p>",
        encoding="utf-8",
    )
    asked = {"question": "Cine a scris poezia Masca Anarhiei?", "sources": [str(page)]}
    async with connect(folders=str(tmp_path), seconds="300") as client:
        found = await client.call_tool("extract_relevant", asked)
    assert data_of(found)["verdict"] != "none"
    assert "Percy Shelley" in text_of(found)


async def test_a_question_in_a_language_that_no_one_knows_finds_a_page_in_other_letters(
    connect: Connect, tmp_path: Path
) -> None:
    asked = {"question": "Berapa harga tiket dewasa?", "sources": [_page(tmp_path, "ru")]}
    async with connect(folders=str(tmp_path), seconds="300") as client:
        shown = await client.call_tool("extract_relevant", asked | {"max_tokens": 200})
    assert data_of(shown)["verdict"] != "none"
    assert PRICE["ru"][1] in text_of(shown)
