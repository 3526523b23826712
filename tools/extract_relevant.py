"""The tool `extract_relevant`: numbered sentences of given sources → the ones that answer, or none (zero-index §4.1).

Not for: searching. Sources are named by the caller.
"""

from typing import Annotated, Final

from mcp_types import CallToolResult
from pydantic import BaseModel, Field

from pipeline.documents import Document, Extraction
from pipeline.evidence.assemble import Assembled, assemble
from pipeline.evidence.sheet import Sheet
from pipeline.evidence.show import UNSURE
from pipeline.extract.extract import extract
from pipeline.sources import Loaded, load_sources
from pipeline.text.frame import new_mark, notice, one_line
from pipeline.work import in_thread
from tools.context import Next, ToolContext, answer, behind, larger, repeated, reporter, services_of, write_next
from tools.passages import Passage, passages

TOOL: Final = "extract_relevant"
FETCH_SHARE = 0.6
"""Part of the call's time that sources may take to arrive."""


class ExtractRelevantResult(BaseModel):
    """Structured part of the answer."""

    answered: bool = Field(description="Whether the passages surely answer")
    verdict: str = Field(description="answered; unsure: the nearest passages, which may not answer; none: no passage")
    reason: str
    confidence: float = Field(description="0..1")
    passages: list[Passage]
    left_out: int = Field(description="Scored sentences that did not fit")
    failures: list[str] = Field(description="Sources that could not be read, with the reason")
    next: list[Next] = Field(description="Calls that go on from here, best first")
    tokens: int = Field(description="Tokens of the text part")


async def extract_relevant(
    question: Annotated[str, Field(description="The question, or what to look for.", min_length=1, max_length=2000)],
    sources: Annotated[
        list[str],
        Field(description="URLs, files, folders, or handles.", min_length=1, max_length=50),
    ],
    ctx: ToolContext,
    max_tokens: Annotated[int, Field(description="Token budget.", ge=100, le=20000)] = 1000,
) -> Annotated[CallToolResult, ExtractRelevantResult]:
    """Return the sentences of given pages or files that answer a question, word for word and cited, or that none does.

    Without known sources use research; for a very long document raptor_query.
    """
    services, report = services_of(ctx), reporter(ctx)
    loaded = await load_sources(sources, services, seconds=services.seconds * FETCH_SHARE, report=report)
    extraction = await extract(
        question,
        loaded.documents,
        embedder=services.embedder,
        reranker=services.reranker,
        asking=services.asking,
    )
    sheet, assembled = await in_thread(_sheet, loaded, extraction, max_tokens)
    following = repeated(ctx, TOOL, loaded.failures)
    if extraction.verdict == "none":
        following.append(Next(tool="research", arguments={"question": question}))
    elif assembled.left_out:
        following.extend(larger(ctx, TOOL, max_tokens))
    write_next(sheet, following, ctx)
    _add_failures(sheet, loaded)
    pages = behind(assembled.evidence, loaded.documents)
    return answer(sheet.text, _data(extraction, assembled, loaded, following, sheet.tokens), pages=pages)


def _sheet(loaded: Loaded, extraction: Extraction, max_tokens: int) -> tuple[Sheet, Assembled]:
    mark = new_mark()
    sheet = Sheet(max_tokens, reserve=min(60, max_tokens // 5))
    if extraction.sentences:
        sheet.add_cut(notice(mark))
    if extraction.verdict == "unsure":
        sheet.add_cut(UNSURE)
    assembled = assemble(loaded.documents, extraction, max_tokens=sheet.room, mark=mark)
    sheet.add(assembled.shown.text)
    sheet.release()
    if extraction.verdict == "none":
        sheet.add_cut(f"None: no sentence of the sources answers this. {extraction.reason}")
        sheet.add_cut("Read: " + ", ".join(_name(document) for document in loaded.documents[:10]))
    elif assembled.left_out:
        sheet.add_cut(f"Left out: {assembled.left_out} weaker sentences.")
    return sheet, assembled


def _add_failures(sheet: Sheet, loaded: Loaded) -> None:
    for failure in loaded.failures[:5]:
        sheet.add_cut(f"Not read: {one_line(failure.source)}: {one_line(failure.reason)}")


def _name(document: Document) -> str:
    return one_line(document.page.title) or document.page.final_url


def _data(
    extraction: Extraction, assembled: Assembled, loaded: Loaded, following: list[Next], tokens: int
) -> ExtractRelevantResult:
    return ExtractRelevantResult(
        answered=extraction.answered,
        verdict=extraction.verdict,
        reason=extraction.reason,
        confidence=round(extraction.confidence, 4),
        passages=passages(assembled),
        left_out=assembled.left_out,
        failures=[f"{f.source}: {f.reason}" for f in loaded.failures],
        next=following,
        tokens=tokens,
    )
