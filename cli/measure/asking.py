"""The steps that write about a question, by rules and with a generator: parsing it, and answering from evidence.

Not for: steps that read pages (`reading.py`) or cut them (`chunks.py`).
"""

from typing import Final

from cli.measure.library import Row, Setup, mean, some
from cli.measure.watched import Watched
from pipeline.answer import Statement, Writing, write_answer
from pipeline.documents import ParsedRequest
from pipeline.evidence.assemble import assemble
from pipeline.extract.extract import extract
from pipeline.rank.fuse import reciprocal_rank_fusion
from pipeline.search.parse import parse_request
from pipeline.search.parse_model import Parser, parse
from pipeline.text.frame import new_mark
from pipeline.work import in_thread

FIRST: Final = 5
"""Pages that queries are expected to find."""
EVIDENCE: Final = 800
"""Tokens of evidence that an answer is written from."""
UNSEARCHED: Final = (
    "Write a short poem about a bicycle in autumn.",
    "What is 17 times 23?",
    "Thanks, that helped a lot!",
    "Rewrite this sentence in the past tense: the boats leave at dawn.",
    "Write a Python function that reverses a list.",
    "Translate into French: the door is open.",
    "Good morning, how are you?",
    "Sort these words by length: harbour, sea, lighthouse, boat.",
    "If all bloops are razzies and all razzies are lazzies, are all bloops lazzies?",
    "Invent a name for a bakery on a hill.",
)
"""Requests that need no source."""


async def parse_requests(setup: Setup) -> list[Row]:
    """Return how well queries by rules and by the generator find the pages that answer, and who needs a search."""
    watched = Watched(setup.generator)
    asked = setup.answerable
    unsearched = some(UNSEARCHED, setup.limit)
    parser = Parser(watched, None, setup.seconds)
    found: dict[bool, list[float]] = {False: [], True: []}
    right: dict[bool, list[float]] = {False: [], True: []}
    narrowed: dict[bool, list[float]] = {False: [], True: []}
    taken: list[float] = []
    texts = [one.question for one in asked]
    for number, text in enumerate((*texts, *unsearched)):
        rules = parse_request(text, today=setup.today)
        told = await parse(text, parser, today=setup.today)
        taken.append(float(told.made_by == "model"))
        for by_model, parsed in ((False, rules), (True, told)):
            right[by_model].append(float(parsed.need_search == (number < len(texts))))
            narrowed[by_model].append(float(any(query.freshness != "any" for query in parsed.queries)))
            if number < len(texts):
                found[by_model].append(await in_thread(_found, setup, parsed, asked[number].pages))
        await setup.report(number + 1, len(texts) + len(unsearched), "parse")
    spent = await watched.spent()
    n = len(taken)
    return [
        Row(
            "parse", f"pages that answer among the first {FIRST}", len(asked), mean(found[False]), mean(found[True])
        ).spending(spent),
        Row("parse", "need for a search told right", n, mean(right[False]), mean(right[True])),
        Row("parse", "requests with a query for recent pages only", n, mean(narrowed[False]), mean(narrowed[True])),
        Row("parse", "requests that the model parsed, not the rules for it", n, None, mean(taken)),
    ]


def _found(setup: Setup, parsed: ParsedRequest, pages: tuple[str, ...]) -> float:
    """Share of `pages` among the first documents by all queries together."""
    count = len(setup.library.names)
    orders = []
    for query in parsed.queries:
        scores = setup.library.index.scores(query.text)
        orders.append([i for i in sorted(range(count), key=lambda i: -float(scores[i])) if scores[i] > 0])
    fused = reciprocal_rank_fusion(orders, count)
    best = sorted(range(count), key=lambda i: -float(fused[i]))[:FIRST]
    return sum(setup.library.names[i] in pages for i in best) / max(1, min(FIRST, len(pages)))


async def answer_questions(setup: Setup) -> list[Row]:
    """Return whether the facts stand in the evidence (rules) and in the answer written from it, and its support."""
    watched = Watched(setup.generator)
    writing = Writing(watched, None, setup.seconds, setup.today)
    answerable, unanswerable = setup.answerable, setup.unanswerable
    quoted: list[float] = []
    written: list[float] = []
    silent: dict[bool, list[float]] = {False: [], True: []}
    statements: list[Statement] = []
    for number, one in enumerate((*answerable, *unanswerable)):
        documents = setup.library.nearest(one.question, first=one.pages)
        reading = await extract(one.question, documents, reader=setup.reader)
        shown = await in_thread(assemble, documents, reading, max_tokens=EVIDENCE, mark=new_mark())
        answer = await write_answer(one.question, shown.evidence, shown.shown.labels, writing)
        if one.answers:
            quoted.append(float(one.is_in("\n".join(passage.text for passage in shown.evidence))))
            written.append(float(one.is_in(" ".join(statement.text for statement in answer.statements))))
            statements.extend(answer.statements)
        else:
            silent[False].append(float(reading.verdict == "none"))
            silent[True].append(float(not answer.statements and not answer.failure))
        await setup.report(number + 1, len(answerable) + len(unanswerable), "answer")
    spent = await watched.spent()
    return [
        Row(
            "answer",
            "all facts in the evidence (rules), in the answer (model)",
            len(answerable),
            mean(quoted),
            mean(written),
        ).spending(spent),
        Row(
            "answer",
            "sentences that the passages they cite bear out",
            len(statements),
            None,
            mean([float(statement.supported) for statement in statements]),
        ),
        Row("answer", "None where nothing answers", len(unanswerable), mean(silent[False]), mean(silent[True])),
    ]
