"""Rows 1 to 30: zero-indexing. See `papers/__main__.py`."""

import json
import re
import tomllib
from collections.abc import Sequence
from datetime import date
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from bench.generation import weights
from bench.library import CARRIED, read_library
from bench.needless import unseen
from bench.paper_measures import (
    TEXTS,
    VectorStore,
    answering,
    compare,
    judged,
    needle,
    needles,
    single_facts,
)
from bench.paper_row import Bench, Outcome, as_printed, configured, differs, row
from errors import ModelError
from models.protocols import PathScores, Prompt, Said
from papers.zero_index.ask import Asking, read_answer
from papers.zero_index.parser import parse
from papers.zero_index.ranking import rank_as_printed
from papers.zero_index.tags import paper_tags
from pipeline.document.page import Document
from pipeline.document.units import split_sentences, tag_sentences
from pipeline.evidence.assemble import assemble
from pipeline.generated import Writing, write_answer
from pipeline.question.question import Question
from pipeline.reading.extract import extract
from pipeline.search.mixed import mixed_rank
from pipeline.search.parse import parse_request
from pipeline.search.query import SearchResult
from pipeline.text.tokens import count_tokens
from pipeline.text.words import find_entities
from prompts import load
from tests.support.pages import document
from tests.test_papers_extractor import ASKED, LOCKS, Scripted

if TYPE_CHECKING:
    from papers.recipes.sample import Sample

TODAY: Final = date(2026, 11, 26)
SAMPLES: Final = 80
"""Of the extractor's recipe that are looked at."""
PAIRS: Final = 12
"""Questions that SmolLM2 judges."""
TRAIN: Final = Path(__file__).resolve().parents[1] / "papers" / "recipes"


def config(name: str) -> dict[str, object]:
    """Return a recipe's configuration."""
    return tomllib.loads((TRAIN / "configs" / f"{name}.toml").read_text("utf-8"))


@row(1, "ZI §2.1 seven steps in one pass", "tools/research.py")
async def _(bench: Bench) -> Outcome:
    library = read_library(CARRIED)
    one = next(one for one in library.asked if one.answers)
    parsed = parse_request(Question(one.question), today=TODAY)
    pages = library.nearest(parsed.queries[0].text, first=one.pages)
    reading = await extract(Question(one.question), pages, reader=bench.reader)
    shown = assemble(pages, reading, max_tokens=500, mark="0")
    prompt = load("enriched").fill(
        date=TODAY.isoformat(), notice="", evidence=shown.shown.text
    )
    assert shown.shown.text in prompt
    return as_printed(
        f"the tool research; here {len(shown.evidence)} passages in its prompt"
    )


@row(2, "ZI §3.1 whether a search is needed", "papers/zero_index/parser.py")
async def _(_: Bench) -> Outcome:
    wanted = {"What is 17*23?": True, "What is the 17-23 rule in darts?": False}
    for text, free in wanted.items():
        said = {"entities": [], "parts": [], "freshness": "any", "search": not free}
        writer = Writer({**said, "queries": [{"text": text, "language": "en"}]})
        found = await parse(Question(text), writer, None, 9, today=TODAY)
        assert bool(found.needless) is free
    needless, found_of, others = unseen()
    assert others == 0
    return differs(
        f"by rules before the model is asked: of 100 requests by who had not read them {found_of} of "
        f"{needless} needless ones are not searched, and {others} of the others; a model's own word is "
        "noted and not followed: SmolLM2-135M says it of 49 and of 47"
    )


class Writer:
    """A generator that answers a parse."""

    name = "writer"
    context_tokens = 8_000

    def __init__(self, answer: object) -> None:
        self.asked = 0
        self._answer = answer

    async def generate(
        self,
        messages: Sequence[Said],
        *,
        max_tokens: int,
        schema: dict[str, object] | None = None,
    ) -> str:
        """Return the answer."""
        self.asked += 1
        return json.dumps(self._answer)


@row(3, "ZI §3.1 keywords in one inference", "papers/zero_index/parser.py")
async def _(_: Bench) -> Outcome:
    answer = {
        "entities": [],
        "parts": [],
        "freshness": "any",
        "search": True,
        "queries": [{"text": "Quoxholm ferry fare", "language": "en"}],
    }
    writer = Writer(answer)
    found = await parse(
        Question("What is the fare of the ferry to Quoxholm?"),
        writer,
        None,
        9,
        today=TODAY,
    )
    assert writer.asked == 1 and found.made_by == "model" and len(found.queries) == 2
    return as_printed(
        "one call; by rules the raw request is sent (MRR .850, rewritten .831)"
    )


@row(4, "ZI §3.1 dependence on time", "pipeline/search/parse.py")
async def _(_: Bench) -> Outcome:
    said = {
        text: parse_request(Question(text), today=TODAY).queries[0].freshness
        for text in ("weather in Oslo", "weather in Oslo in 2024", "news this week")
    }
    assert list(said.values()) == ["day", "any", "week"]
    return as_printed("day, any, week: a filter of the provider, not words")


@row(5, "ZI §3.1 keywords in other languages", "pipeline/text/glosses")
async def _(_: Bench) -> Outcome:
    found = parse_request(
        Question("Wie hoch ist der Leuchtturm von Quoxholm?"), today=TODAY
    )
    assert any(
        query.language == "en" and "lighthouse" in query.text for query in found.queries
    )
    return as_printed(f"{found.queries[1].text!r} beside the request")


@row(6, "ZI §3.1 words out of the vocabulary stay whole", "pipeline/text/words.py")
async def _(_: Bench) -> Outcome:
    found = find_entities("What does Zorblat Quintex Holdings make?", language="en")
    assert found == ("Zorblat Quintex Holdings",)
    return as_printed("one name")


@row(7, "ZI §4.3 the parser's SFT", "papers/recipes/parser.py")
async def _(_: Bench) -> Outcome:
    found = config("parser_paper")
    assert (found["batch"], found["rate"], found["most_tokens"]) == (16, 5e-6, 16384)
    return configured(
        "parser_paper.toml: batch 16, 5e-6 along a cosine to 0 (there 1.5e-6), an adapter for all weights"
    )


@row(8, "ZI §3.1 the parser's instruction set by GPT-4o", "papers/recipes/parser.py")
async def _(_: Bench) -> Outcome:
    from papers.recipes.parser import parser_samples  # noqa: PLC0415  reads the data sets

    said = [json.loads(one.answer) for one in parser_samples("dev", 1)[:400]]
    free = sum(not one["search"] for one in said)
    assert 0 < free < 0.2 * len(said) and any(one["entities"] for one in said)
    return differs(
        f"{len(said)} samples made by rule from public questions, English only; {free} need no search"
    )


@row(9, "ZI §2.1 search APIs, merged lists", "pipeline/search/chain.py")
async def _(_: Bench) -> Outcome:
    from pipeline.search.provider import providers  # noqa: PLC0415  looks into a folder

    assert len(providers()) > 3
    return differs(
        f"{len(providers())} providers in place of Google and Bing; lists are fused by rank"
    )


def results(count: int) -> tuple[list[SearchResult], dict[str, Document]]:
    """Return hits with pages, the answer in the last one."""
    hits = [
        SearchResult(f"Page {n}", f"https://e.org/{n}", "about boats")
        for n in range(count)
    ]
    pages = {
        one.url: document(f"<p>Boats and boats {n}.</p>", one.url)
        for n, one in enumerate(hits)
    }
    pages[hits[-1].url] = document(
        "<p>The ferry to Quoxholm costs nine crowns.</p>", hits[-1].url
    )
    return hits, pages


@row(10, "ZI §3.2 2n items, the better one wins", "papers/zero_index/ranking.py")
async def _(bench: Bench) -> Outcome:
    hits, pages = results(3)
    ranked = await rank_as_printed(
        Question("fare of the ferry to Quoxholm"), hits, pages, embedder=bench.embedder
    )
    assert ranked[0].result.url == hits[-1].url
    return as_printed(
        '3 pages, 6 items (rank="paper"): the page with the answer by its content'
    )


@row(11, "ZI §3.2 BGE-M3 scores by the keywords", "papers/zero_index/ranking.py")
async def _(bench: Bench) -> Outcome:
    hits, pages = results(3)
    orders = [
        await rank_as_printed(
            Question("Which boats?"),
            hits,
            pages,
            embedder=bench.embedder,
            keywords=keywords,
        )
        for keywords in ((), ("Quoxholm ferry fare crowns",))
    ]
    assert orders[1][0].result.url == hits[-1].url != orders[0][0].result.url
    assert {one.score.made_by for order in orders for one in order} == {"embedding"}
    return differs(
        "by a generator's keywords, by the question without one; cosine of any embedder, dense only"
    )


@row(12, "ZI §3.2 top K distinct pages", "pipeline/search/mixed.py")
async def _(bench: Bench) -> Outcome:
    hits, pages = results(5)
    ranked = await mixed_rank(Question("ferry"), hits, pages, embedder=None)
    assert len({one.result.url for one in ranked}) == 5
    return as_printed("5 of 5; argument max_results")


@row(13, "ZI §4.1 sentences by . ! ? and not in decimals", "pipeline/document/units.py")
async def _(_: Bench) -> Outcome:
    texts = {
        "It is 3.14. Yes!": 2,
        "Version 2.0.1 works? Dr. Lind says so.": 2,
        "好。真的吗？是！": 3,
    }
    assert all(len(split_sentences(text)) == count for text, count in texts.items())
    return as_printed(f"{len(texts)} of {len(texts)} texts")


@row(14, "ZI §4.1 sentences in pairs of tags", "pipeline/document/units.py")
async def _(_: Bench) -> Outcome:
    page = document("<p>One sentence here. Another </TAG-1> one here.</p>")
    shown = paper_tags(tag_sentences(page))
    assert "<TAG-1>One sentence here.</TAG-1>" in shown and shown.count("</TAG-1>") == 1
    return as_printed("a page's own tags are defused")


async def by_pages() -> tuple[Scripted, object]:
    """Return an extractor by pages after it was asked, and the reading."""
    model = Scripted("1,899")
    pages = [
        document(LOCKS),
        document("<p>The baker opens at six. A loaf costs 12 yuan.</p>"),
    ]
    from pipeline.reading.relevance import Blend  # noqa: PLC0415  words alone

    return model, await extract(
        Question(ASKED),
        pages,
        reader=Blend(None),
        extractor=Asking(model, "pages", 10.0),
    )


@row(
    15,
    "ZI §4.1 a page's whole tagged content, page by page",
    "papers/zero_index/ask.py",
)
async def _(_: Bench) -> Outcome:
    model, _found = await by_pages()
    assert len(model.seen) == 2 and any(
        "ten months" in one and "loaf" not in one for one in model.seen
    )
    return as_printed(
        "WINNOW_PAPERS=extractor=pages: 2 pages, 2 calls; over the window the best lines are shown"
    )


@row(16, "ZI §4.1 tags or None", "papers/zero_index/ask.py")
async def _(_: Bench) -> Outcome:
    assert read_answer("<TAG-3>-<TAG-5>,<TAG-9>", 9) == {
        3,
        4,
        5,
        9,
    } and not read_answer("None", 9)
    try:
        read_answer("<TAG-12>", 9)
    except ModelError:
        return as_printed(
            "ranges and None under a grammar; over HTTP as JSON; other numbers are an error"
        )
    raise AssertionError("a line that does not exist")


@row(
    17,
    "ZI §5.2 extraction shortens the generator's prompt (−47 %)",
    "papers/zero_index/ask.py",
)
async def _(bench: Bench) -> Outcome:
    library = read_library(CARRIED)
    before = after = held = count = 0
    for one in [one for one in library.asked if one.answers and one.split == "test"][
        ::6
    ]:
        pages = library.nearest(one.question, first=one.pages)
        words = [wording for fact in one.answers for wording in fact]
        model = Scripted(*words)
        model.context_tokens = 100_000
        plain = await extract(Question(one.question), pages, reader=bench.reader)
        asking = Asking(model, "pages", 10.0)
        short = await extract(
            Question(one.question), pages, reader=bench.reader, extractor=asking
        )
        for reading in (plain, short):
            shown = assemble(pages, reading, max_tokens=768, mark="0")
            if reading is plain:
                before += shown.shown.tokens
            else:
                after += shown.shown.tokens
                held += one.is_in("\n".join(each.text for each in shown.evidence))
        count += 1
    assert after < 0.8 * before
    return differs(
        f"an oracle by pages: {before} to {after} tokens ({after / before - 1:+.0%}), {held} of {count} answers kept; "
        "the paper's is a trained model's"
    )


TAGGED: Final = re.compile(r"<TAG-\d+>(.*?)</TAG-\d+>")


@cache
def printed() -> "list[Sample]":
    """Return the first samples of the extractor's recipe as printed."""
    from papers.recipes.extractor import printed_samples  # noqa: PLC0415  reads the data sets

    return list(islice(printed_samples("dev", 0), SAMPLES))


@cache
def preferred() -> "list[Sample]":
    """Return the first preference pairs of the extractor's recipe as printed."""
    from papers.recipes.extractor import printed_pairs  # noqa: PLC0415  reads the data sets

    return list(islice(printed_pairs("dev", 0), SAMPLES))


@row(
    18,
    "ZI §4.2 Instruction-A (a summary before each tag)",
    "papers/recipes/extractor.py",
)
async def _(_: Bench) -> Outcome:
    said = [one.answer for one in printed()[::2] if one.answer != "None"]
    assert all(": <TAG-" in line for text in said for line in text.splitlines())
    return differs(
        f"{len(said)} of {len(printed())} samples: the summary is the beginning of the sentences, there "
        "GPT-4o's words, none of which is public"
    )


@row(19, "ZI §4.2 Instruction-B", "papers/recipes/extractor.py")
async def _(_: Bench) -> Outcome:
    form = re.compile(r"None|<TAG-\d+>(-<TAG-\d+>)?(,<TAG-\d+>(-<TAG-\d+>)?)*")
    assert all(form.fullmatch(one.answer) for one in printed()[1::2])
    return as_printed(
        f"{len(printed()) // 2} of {len(printed())} samples: tags, or None"
    )


@row(
    20,
    "ZI §4.2 filters: 100 tokens, two equal passes, None 5 %",
    "papers/recipes/extractor.py",
)
async def _(_: Bench) -> Outcome:
    found = printed()
    fewest = min(count_tokens(" ".join(TAGGED.findall(one.prompt))) for one in found)
    none = sum(one.answer == "None" for one in found) / len(found)
    assert config("extractor_paper")["kind"] == "printed"
    assert fewest >= 100 and none <= 0.05
    return differs(
        f'by kind = "printed": of {len(found)} samples none has under {fewest} tokens, None is {none:.3f} '
        "of the answers; two passes need the labelling model"
    )


@row(21, "ZI §4.3 the extractor's SFT", "papers/recipes/extractor.py")
async def _(_: Bench) -> Outcome:
    found = config("extractor_paper")
    assert found["most_tokens"] == 16384 and found["kind"] == "printed"
    longest = max(count_tokens(one.prompt) for one in printed())
    assert 4_000 < longest <= 16_384
    return configured(
        f"extractor_paper.toml; of whole pages, the longest prompt of {len(printed())} has {longest} tokens; "
        "not trained here (80 GB GPUs): the proof has F1 .205"
    )


@row(22, "ZI §4.5 DPO", "papers/recipes/lora.py")
async def _(_: Bench) -> Outcome:
    found = config("extractor_dpo_paper")
    assert found["stage"] == "dpo" and found["kind"] == "printed_pairs"
    sizes = sorted(count_tokens(one.prompt) for one in preferred())
    assert sizes[0] >= 500 and 4_000 < sizes[-1] <= 16_384
    return configured(
        f"extractor_dpo_paper.toml; prompts of {sizes[0]}, {sizes[len(sizes) // 2]}, {sizes[-1]} tokens "
        f"(least, middle, most of {len(sizes)}), all in tags; the loss is the formula's "
        "(tests/test_recipes.py); neither rate nor beta is printed"
    )


@row(
    23,
    "ZI §4.4 DPO pairs by partial replacement, and a judge",
    "papers/recipes/extractor.py",
)
async def _(_: Bench) -> Outcome:
    pairs = preferred()
    assert all(one.rejected and one.rejected != one.answer for one in pairs)
    assert all("<TAG-1>" in one.prompt for one in pairs)
    assert [one.prompt for one in pairs[::2]] != [one.prompt for one in pairs[2::2]]
    none = sum(one.answer == "None" for one in pairs) / len(pairs)
    return differs(
        f"{len(pairs)} pairs, two a request as printed, None {none:.3f} of the answers; what is rejected is made "
        "by rule (a wrong line, one less, one more, or None), where GPT-4o replaces and judges"
    )


@row(24, "ZI §2.1 the enriched prompt", "prompts/enriched.md")
async def _(_: Bench) -> Outcome:
    text = load("enriched").fill(
        date="2026-11-26", notice="NOTICE", evidence="EVIDENCE"
    )
    assert "2026-11-26" in text and "EVIDENCE" in text
    return as_printed("date, notice, passages with their sources")


@row(25, "ZI §2.1 the generator answers", "pipeline/generated.py")
async def _(bench: Bench) -> Outcome:
    page = document(LOCKS)
    reading = await extract(Question(ASKED), [page], reader=bench.reader)
    shown = assemble([page], reading, max_tokens=400, mark="0")
    label = shown.shown.labels[0]
    said = {
        "sentences": [
            {"passages": [label], "sentence": "The Desmann lock costs 1,899 yuan."}
        ]
    }
    written = await write_answer(
        ASKED, shown.evidence, shown.shown.labels, Writing(Writer(said), None, 9, TODAY)
    )
    assert written.statements[0].supported
    return as_printed("each sentence with its passages, and checked against them")


class Judge:
    """Takes the longer answer, or always the first."""

    name = "judge"
    context_tokens = 8_000
    abilities = frozenset({"score_tree"})

    def __init__(self, *, biased: bool) -> None:
        self._biased = biased

    async def generate(
        self, messages: Sequence[Said], *, max_tokens: int, schema: object = None
    ) -> str:
        """Refuse."""
        raise ModelError("It only chooses.", hint="Ask it to choose.")

    async def score_tree(
        self, prefix: Prompt, paths: Sequence[str], *, among_siblings: bool = False
    ) -> PathScores:
        """Return the chances of A and B."""
        text = prefix if isinstance(prefix, str) else prefix[-1].content
        first, second = text.split("\nA: ")[1].split("\nWhich")[0].split("\nB: ")
        better = self._biased or len(first) > len(second)
        chances = [0.9, 0.1] if better else [0.1, 0.9]
        return PathScores(np.log(chances), 1, 1, 1, 1)


@row(26, "ZI §5.1 the judge with swapped order, P-BIAS", "bench/paper_measures.py")
async def _(_: Bench) -> Outcome:
    fair = [
        await compare("q", "a long answer", "short", Judge(biased=False))
        for _ in range(3)
    ]
    biased = [
        await compare("q", "a long answer", "short", Judge(biased=True))
        for _ in range(3)
    ]
    assert fair == ["first"] * 3 and biased == ["bias"] * 3
    asked = single_facts("test")[:PAIRS]
    async with answering(str(weights())) as model:
        said = await judged(asked, model)
    return as_printed(
        f"3 of 3, and 3 of 3 of a judge that always says A; SmolLM2-135M on {PAIRS} pairs of a "
        f"right and a wrong answer: right {said['first']}, wrong {said['second']}, P-BIAS "
        f"{said['bias'] / PAIRS:.2f}"
    )


async def spent(bench: Bench) -> tuple[int, int, int]:
    """Return the tokens of the vector store, of whole pages and of our evidence for a
    question."""
    library = read_library(CARRIED)
    one = next(one for one in library.asked if one.answers)
    pages = library.nearest(one.question, first=one.pages)
    store = VectorStore(bench.embedder)
    await store.add(pages)
    reading = await extract(Question(one.question), pages, reader=bench.reader)
    ours = assemble(pages, reading, max_tokens=1_000, mark="0")
    near = await store.nearest(one.question)
    return (
        sum(map(count_tokens, near)),
        sum(count_tokens(page.text) for page in pages),
        ours.shown.tokens,
    )


@row(27, "ZI Table 3 input tokens", "pipeline/evidence/assemble.py")
async def _(bench: Bench) -> Outcome:
    store, whole, ours = await spent(bench)
    assert ours <= 1_000 < store <= 1.6 * whole
    return as_printed(
        f"one question: vector store {store}, whole pages {whole}, evidence {ours} (an exact budget)"
    )


@row(28, "ZI §5.1 VectorDB-RAG: 512, 128, 12, neighbour 1", "bench/paper_measures.py")
async def _(bench: Bench) -> Outcome:
    store = VectorStore(bench.embedder)
    await store.add([document(f"<p>{' '.join(f'word{n}' for n in range(3_000))}</p>")])
    sizes = [count_tokens(chunk) for chunk in store.chunks[0]]
    one, with_both = (
        await store.nearest("word9", count=1, neighbours=0),
        await store.nearest("word9", count=1),
    )
    assert max(sizes) < 540 and len(one) == 1 and len(with_both) in (2, 3)
    return as_printed(
        f"{len(sizes)} chunks of at most {max(sizes)} tokens; python -m bench.paper_measures"
    )


@row(
    29,
    "ZI §5.2 needles: single, reasoning, multi-answer, multi-question",
    "bench/paper_measures.py",
)
async def _(bench: Bench) -> Outcome:
    found = await needles(bench.reader, (2_000, 8_000))
    assert found["single/8000"] >= 0.9
    assert len({needle("single", number) for number in range(TEXTS)}) == TEXTS >= 30
    text = ", ".join(f"{name} {share:.2f}" for name, share in found.items())
    return differs(
        f"in 512 tokens, {TEXTS} texts a kind: {text}; MulTiple and MTI are not here"
    )


@row(30, "ZI §5.2 precision, recall, F1, exact match with None", "bench/recipes.py")
async def _(_: Bench) -> Outcome:
    from bench.recipes import f1  # noqa: PLC0415  the recipes' own

    assert f1(frozenset({1, 2}), frozenset({2, 3})) == 0.5
    return as_printed("python -m bench.recipes --judge extractor")
