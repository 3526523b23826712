"""The tool `raptor_query`: build (or reuse) a tree over the sources, and ask it (RAPTOR §3).

Not for: short pages, where `extract_relevant` is cheaper and says None when nothing answers.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Annotated, Final, Literal

import anyio
from mcp_types import CallToolResult
from pydantic import BaseModel, Field

from errors import SourceNotFound, UsageError
from pipeline.documents import Document, Failure, Page
from pipeline.evidence.assemble import Assembled, assemble
from pipeline.evidence.sheet import Sheet
from pipeline.evidence.show import FRAME_SHARE, hint_room, notice_within
from pipeline.extract.extract import left_unread, read_documents
from pipeline.fetch.handles import find_page, page_handle
from pipeline.raptor.build import build_tree
from pipeline.raptor.evidence import fit_evidence, write_shown
from pipeline.raptor.outline import outline
from pipeline.raptor.query import (
    SUMMARY_SHARE,
    ChosenNode,
    NodeMode,
    is_broad,
    overview,
    query_tree,
    read_tree,
)
from pipeline.raptor.summarise import Writer
from pipeline.raptor.tree import SCHEME, Tree, TreeOptions
from pipeline.segment.idms import Idms
from pipeline.services import Services
from pipeline.sources import Loaded, in_part, load_sources, open_tree, room_for, store_for
from pipeline.text.frame import framed, new_mark, one_line
from pipeline.work import Report, in_thread, time_left
from tools.context import (
    FIRST,
    Next,
    ToolContext,
    answer,
    behind,
    failures_of,
    larger,
    repeated,
    reporter,
    services_of,
    tell_failures,
    tell_notes,
    tell_rest,
    write_next,
)

TOOL: Final = "raptor_query"
FETCH_SHARE: Final = 0.5
"""Part of the call's time that sources may take to arrive; the tree needs the rest."""
WRITE_SHARE: Final = FETCH_SHARE / 2
"""Part that a generator may take for each of: boundaries of idms leaves (what is not judged by then is cut by
embeddings), what is written for the index, and the summaries that are shown."""
TREE_SHARE: Final = 0.6
"""Part of the time left that the tree may take; without it the documents themselves are read."""


class TreePassage(BaseModel):
    """One passage; its text stands in the text part under `label`."""

    label: str = Field(description="Number in the text part")
    is_summary: bool = Field(description="True: extracted or written by a summariser over several leaves, see sources")
    citation: str = Field(description="URL that opens the page at these words; the page's URL for a summary")
    score: float
    sources: list[str] = Field(description="For a summary: citations of what it stands on, at most 8")


class RaptorQueryResult(BaseModel):
    """Structured part of the answer."""

    tree: str = Field(description="Handle of the tree; pass it as source to ask the same tree again")
    mode: str
    layers: int
    leaves: int
    summaries: int
    passages: list[TreePassage]
    failures: list[str] = Field(description="Sources that could not be read, with the reason")
    next: list[Next] = Field(description="Calls that go on from here, best first")
    tokens: int = Field(description="Tokens of the text part")


async def raptor_query(
    question: Annotated[str, Field(description="What to ask the documents.", min_length=1, max_length=2000)],
    sources: Annotated[
        list[str],
        Field(
            description="URLs, files, folders, handles; an earlier winnow://tree/ handle, alone or with more to add.",
            min_length=1,
            max_length=50,
        ),
    ],
    ctx: ToolContext,
    mode: Annotated[
        Literal["guided", "collapsed", "traversal", "flat"],
        Field(
            description="guided finds facts best; collapsed adds summaries, for themes; traversal walks from the top."
        ),
    ] = "guided",
    max_tokens: Annotated[int, Field(description="Token budget.", ge=200, le=20000)] = 2000,
    chunking: Annotated[
        Literal["sentences", "idms"], Field(description="Leaves: fixed size, or by subject.")
    ] = "sentences",
) -> Annotated[CallToolResult, RaptorQueryResult]:
    """Ask long documents (reports, books, whole folders) a question, through a RAPTOR tree; returns cited passages.

    The tree is kept: pass its handle as the source of the next question. For single pages use extract_relevant.
    """
    services, report = services_of(ctx), reporter(ctx)
    # 1. The tree: kept, grown, or built
    idms = _idms(services) if chunking == "idms" else None
    tree, loaded = await _tree(sources, chunking, services, report, idms)
    partly = (
        [in_part(source.url, source.unread, source.rest) for source in tree.sources if source.unread] if tree else []
    )
    failures = tuple(dict.fromkeys([*partly, *loaded.failures]))
    mark = new_mark()
    sheet = Sheet(max_tokens, reserve=hint_room(max_tokens) + room_for(failures, max_tokens))
    sheet.add(notice_within(mark, max_tokens))
    if tree is None:
        return await _without_tree(question, loaded, services, sheet, mark)
    if mode in ("collapsed", "traversal"):
        sheet.add(framed(await in_thread(outline, tree, max_tokens=int(max_tokens * FRAME_SHARE)), mark))
    # 2. Passages within the budget: units as the core reads them, or nodes of the tree
    asked = _guided if mode == "guided" else partial(_by_nodes, mode=mode)
    assembled, documents = await asked(tree, question, services, max_tokens=sheet.room, mark=mark)
    sheet.add(assembled.shown.text)
    sheet.release()
    # 3. How to go on
    following = [Next(tool=TOOL, arguments={"sources": [tree.id]}), *repeated(TOOL, failures)]
    following.extend(larger(TOOL, max_tokens) if assembled.left_out else [])
    tell_rest(sheet, failures)
    if hint_room(max_tokens):
        write_next(sheet, following, TOOL)
        sheet.add_cut(f"Tree of {len(tree.leaves)} leaves in {len(tree.layers)} layers.")
    for line in idms.notes if idms is not None else ():
        sheet.add_cut(one_line(line))
    tell_failures(sheet, failures)
    pages = tuple(behind(assembled.evidence, documents))
    tell_notes(sheet, pages)
    data = _data(tree, mode, assembled, failures, following, sheet.tokens)
    return answer(sheet.text, data, pages=pages)


async def _guided(
    tree: Tree, question: str, services: Services, *, max_tokens: int, mark: str
) -> tuple[Assembled, Sequence[Document]]:
    """Return units as the core reads them, below summaries where the question is about the whole, and their pages."""
    pages = partial(_pages, tree, services=services)
    documents, reading = await read_tree(
        tree, question, pages, reader=services.reader, embedder=services.embedder, max_tokens=max_tokens
    )
    whole = overview(tree, int(SUMMARY_SHARE * max_tokens)) if is_broad(question) else ()
    summaries, below = await _fitted(tree, whole, services, max_tokens=max_tokens, mark=mark)
    fill = partial(assemble, documents, reading, max_tokens=max_tokens, mark=mark, before=summaries.evidence)
    # Leaves that stand in for a page that is gone are no page to open.
    standing = {document.page.final_url: document for document in (*documents, *below) if document.page.html}
    return await in_thread(fill), list(standing.values())


async def _by_nodes(
    tree: Tree, question: str, services: Services, *, mode: NodeMode, max_tokens: int, mark: str
) -> tuple[Assembled, Sequence[Document]]:
    """Return leaves and summaries as they score in `mode`, and their pages."""
    passages = await query_tree(tree, question, mode=mode, max_tokens=max_tokens, embedder=services.embedder)
    return await _fitted(tree, passages, services, max_tokens=max_tokens, mark=mark)


async def _fitted(
    tree: Tree, passages: Sequence[ChosenNode], services: Services, *, max_tokens: int, mark: str
) -> tuple[Assembled, Sequence[Document]]:
    """Return the best passages that fit, summaries written where a generator is set, and their pages."""
    if services.generator is not None:
        writer, seconds = Writer(services.generator), services.seconds * WRITE_SHARE
        store = store_for((source.url for source in tree.sources), services)
        passages = await write_shown(tree, passages, writer, store=store, seconds=seconds)
    places = {document for passage in passages for document in tree.documents_below(passage.node)}
    documents = await _pages(tree, sorted(places), services)
    fit = partial(fit_evidence, tree, passages, documents, max_tokens=max_tokens, mark=mark)
    return await in_thread(fit), list(documents.values())


def _idms(services: Services) -> Idms:
    return Idms(
        services.idms,
        generator=services.generator,
        embedder=services.embedder,
        store=services.stores.scores,
        boundary_seconds=services.seconds * WRITE_SHARE,
        form_seconds=services.seconds * WRITE_SHARE,
    )


async def _tree(
    sources: list[str],
    chunking: Literal["sentences", "idms"],
    services: Services,
    report: Report,
    idms: Idms | None,
) -> tuple[Tree | None, Loaded]:
    """Return the tree of a handle, a tree grown from it by further sources, or a tree of the sources, and what was read
    for it; no tree where it is not built in time."""
    handles = [source for source in sources if source.startswith(SCHEME)]
    if len(handles) > 1:
        raise UsageError("Two trees cannot be joined.", hint="Pass one winnow://tree/ handle, and URLs and files.")
    before = await _kept_tree(handles[0], services) if handles else None
    named = [source for source in sources if source not in handles]
    if before is not None and not named:
        return before, Loaded((), ())
    standing = await _pages(before, range(len(before.sources)), services) if before else {}
    gone = [s.url for place, s in enumerate(before.sources) if place not in standing] if before else []
    loaded = await load_sources([*gone, *named], services, seconds=services.seconds * FETCH_SHARE, report=report)
    # A page that was named again stands for its earlier self.
    fresh = {document.page.final_url for document in loaded.documents}
    kept = [document for document in standing.values() if document.page.final_url not in fresh]
    loaded = replace(loaded, documents=(*kept, *loaded.documents))
    with anyio.move_on_after(TREE_SHARE * time_left()):
        tree = await build_tree(
            loaded.documents,
            embedder=services.embedder,
            options=before.built_with.options if before else TreeOptions(chunking, clustering=services.clustering),
            store=store_for((document.page.final_url for document in loaded.documents), services),
            report=report,
            grown_from=before,
            idms=idms,
        )
        return tree, loaded
    return None, loaded


async def _without_tree(question: str, loaded: Loaded, services: Services, sheet: Sheet, mark: str) -> CallToolResult:
    """Answer from the documents themselves, as the core reads them: better than nothing while the tree is not built."""
    seconds = TREE_SHARE * time_left()
    reading = await read_documents(question, loaded.documents, reader=services.reader, seconds=seconds)
    fill = partial(assemble, loaded.documents, replace(reading, verdict="unsure"), max_tokens=sheet.room, mark=mark)
    assembled = await in_thread(fill)
    sheet.add(assembled.shown.text)
    sheet.release()
    failures = (*loaded.failures, *left_unread(reading))
    following = [Next(tool=TOOL, arguments={})]
    write_next(sheet, following, TOOL)
    sheet.add_cut("The tree is not built yet; this is read from the documents. The same call goes on building it.")
    tell_failures(sheet, failures)
    data = RaptorQueryResult(
        tree="",
        mode="flat",
        layers=0,
        leaves=0,
        summaries=0,
        passages=_passages(assembled),
        failures=failures_of(failures),
        next=following,
        tokens=sheet.tokens,
    )
    return answer(sheet.text, data, pages=behind(assembled.evidence, loaded.documents))


async def _kept_tree(handle: str, services: Services) -> Tree:
    tree = await in_thread(open_tree, handle, services)
    if tree is None:
        raise SourceNotFound(
            f"The tree {handle} is unknown or has expired.", source=handle, hint="Pass its sources again."
        )
    return tree


async def _pages(tree: Tree, places: Iterable[int], services: Services) -> dict[int, Document]:
    documents: dict[int, Document] = {}
    for place in places:
        source = tree.sources[place]
        named = Page(source.url, source.url, source.title, "", "", content_hash=source.content_hash)
        page = await in_thread(find_page, services.stores.pages, page_handle(named))
        if page is not None:
            documents[place] = await services.documents.read(page)
    return documents


def _passages(assembled: Assembled) -> list[TreePassage]:
    return [
        TreePassage(
            label=label,
            is_summary=one.is_summary,
            citation=one.citation,
            score=round(one.score.value, 4),
            sources=list(one.sources),
        )
        for label, one in islice(zip(assembled.shown.labels, assembled.evidence, strict=True), FIRST)
    ]


def _data(
    tree: Tree, mode: str, assembled: Assembled, failures: Sequence[Failure], following: list[Next], tokens: int
) -> RaptorQueryResult:
    return RaptorQueryResult(
        tree=tree.id,
        mode=mode,
        layers=len(tree.layers),
        leaves=len(tree.leaves),
        summaries=sum(node.is_summary for node in tree.nodes),
        passages=_passages(assembled),
        failures=failures_of(failures),
        next=following,
        tokens=tokens,
    )
