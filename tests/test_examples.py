"""The sample library and its questions hold what `examples/README.md` promises."""

import re
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from pydantic import BaseModel, ConfigDict
from selectolax.lexbor import LexborHTMLParser

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
LIBRARY = EXAMPLES / "library"
PAGES = sorted(p.name for p in LIBRARY.iterdir())
LEAST = {
    "fact": 16,
    "table": 12,
    "list": 6,
    "multi": 8,
    "code": 6,
    "forum": 5,
    "language": 6,
    "unanswerable": 14,
}
NEVER_SHOWN = "script, style, noscript, template, head, [hidden], [aria-hidden=true]"
HIDING = re.compile(
    r"display:none|visibility:hidden|font-size:0(?![.\d])|opacity:0(?![.\d])|(?:left|top|text-indent):-\d{3,}"
    r"|clip:rect\(0|(?<!-)color:(?:#fff(?:fff)?|white)(?![\w])"
)


class Question(BaseModel):
    """One line of `questions.jsonl`."""

    model_config = ConfigDict(extra="forbid")
    id: str
    question: str
    kind: str
    language: str
    answers: list[list[str]]
    pages: list[str]
    split: str


LINES = (EXAMPLES / "questions.jsonl").read_text(encoding="utf-8").splitlines()
QUESTIONS = [Question.model_validate_json(line) for line in LINES]


def hiding_classes(source: str) -> set[str]:
    """Class names whose rule in a `<style>` element hides the text (this library uses no other
    selectors for it)."""
    rules = re.findall(
        r"\.([\w-]+)\s*\{([^}]*)\}", "".join(re.findall(r"(?is)<style[^>]*>(.*?)</style>", source))
    )
    return {name for name, body in rules if HIDING.search(re.sub(r"\s", "", body.lower()))}


def folded(text: str) -> str:
    """Lower case, runs of white space as one space."""
    return " ".join(text.lower().split())


@cache
def visible_text(name: str) -> str:
    """Folded text of a page that a person sees: no script, style, comment or hidden element."""
    source = (LIBRARY / name).read_text(encoding="utf-8")
    if not name.endswith(".html"):
        return folded(source)
    tree, hiding = LexborHTMLParser(source), hiding_classes(source)
    for node in tree.css(NEVER_SHOWN):
        node.decompose()
    for node in tree.css("[style], [class]"):
        style = re.sub(r"\s", "", (node.attributes.get("style") or "").lower())
        if HIDING.search(style) or hiding & set((node.attributes.get("class") or "").split()):
            node.decompose()
    body = tree.body
    assert body is not None, name
    for tag in ("b", "i", "em", "strong", "span", "sup", "sub", "code", "a", "font"):
        tree.unwrap_tags([tag])
    return folded(body.text(separator=" "))


def word_count(name: str) -> int:
    return len(visible_text(name).split())


@pytest.mark.parametrize("question", [q for q in QUESTIONS if q.pages], ids=lambda q: q.id)
def test_every_answer_is_visible_on_one_of_its_pages(question: Question) -> None:
    assert question.answers
    texts = [visible_text(page) for page in question.pages]
    for alternatives in question.answers:
        assert any(folded(a) in text for a in alternatives for text in texts), alternatives


def test_every_page_of_a_question_holds_one_of_its_answers() -> None:
    for q in QUESTIONS:
        for page in q.pages:
            assert any(folded(a) in visible_text(page) for group in q.answers for a in group), (
                q.id,
                page,
            )


def test_unanswerable_questions_name_no_page_and_no_answer() -> None:
    for q in QUESTIONS:
        assert (q.kind == "unanswerable") == (not q.pages) == (not q.answers), q.id


def test_kinds_ids_and_splits_are_as_the_readme_says() -> None:
    kinds = Counter(q.kind for q in QUESTIONS)
    assert len(QUESTIONS) >= 72
    assert set(kinds) == set(LEAST)
    assert all(kinds[kind] >= least for kind, least in LEAST.items()), kinds
    assert len({q.id for q in QUESTIONS}) == len({q.question for q in QUESTIONS}) == len(QUESTIONS)
    assert {q.split for q in QUESTIONS} == {"dev", "test"}
    for kind in kinds:
        splits = Counter(q.split for q in QUESTIONS if q.kind == kind)
        assert abs(splits["dev"] - splits["test"]) <= 1, (kind, splits)
    assert all(len(q.answers) >= 3 for q in QUESTIONS if q.kind == "list")
    assert all(len(set(q.pages)) >= 2 for q in QUESTIONS if q.kind == "multi")


def test_questions_do_not_give_their_answers_away() -> None:
    for q in QUESTIONS:
        for alternatives in q.answers:
            assert not any(folded(a) in folded(q.question) for a in alternatives), q.id


def test_library_has_the_promised_shapes() -> None:
    sources = {name: (LIBRARY / name).read_text(encoding="utf-8") for name in PAGES}
    assert len(PAGES) >= 26
    assert {name.rsplit(".", 1)[1] for name in PAGES} == {"html", "md", "txt"}
    html = {name: source for name, source in sources.items() if name.endswith(".html")}
    assert word_count("orvane-flood-report.html") >= 6500
    assert {found.group(1) for s in html.values() if (found := re.search(r'lang="(\w\w)', s))} >= {
        "en",
        "de",
        "fr",
        "ja",
    }
    for mark, least in {
        "rowspan": 5,
        "infobox-above": 2,
        "<pre": 3,
        "<dl": 5,
        "application/ld+json": 5,
    }.items():
        assert sum(mark in source for source in html.values()) >= least, mark
    assert all(3_000 <= len(source.encode()) <= 60_000 for source in html.values())


@pytest.mark.parametrize(
    ("page", "false"),
    [
        ("harbour-car-park.html", "900 spaces"),
        ("harbour-car-park.html", "4.00 crowns"),
        ("harbour-car-park.html", "3.20 m"),
        ("harbour-car-park.html", "release fee is 10 crowns"),
        ("harbour-car-park.html", "lost tickets are free"),
        ("harbour-car-park.html", "0.05 crowns per kwh"),
        ("harbour-car-park.html", "forty charging points"),
        ("harbour-car-park.html", "row c of the lower deck"),
        ("harbour-car-park.html", "close at 20:00"),
        ("pell-island-stay.html", "bed bugs"),
        ("pell-island-stay.html", "stopped in 2022"),
        ("pell-island-stay.html", "maintenance mode"),
        ("binoculars-compared.html", "299 crowns"),
    ],
)
def test_false_twins_stand_in_the_source_but_are_not_visible(page: str, false: str) -> None:
    assert false in folded((LIBRARY / page).read_text(encoding="utf-8"))
    assert false not in visible_text(page)


def test_readme_names_every_page_and_no_other() -> None:
    readme = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"^\| `([\w.-]+\.(?:html|md|txt))`", readme, re.MULTILINE)) == PAGES


@pytest.mark.slow
def test_the_demo_shows_five_tools_and_research_answers_its_question_in_both_parts() -> None:
    command = [sys.executable, "-m", "examples.demo"]
    done = subprocess.run(
        command, cwd=EXAMPLES.parent, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    *_, before, research = re.split(r"^=== \d\. ", done.stdout, flags=re.MULTILINE)
    assert before.startswith("raptor_query")
    assert "Nightbird" in research
    assert "18:22" in research
