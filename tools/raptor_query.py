"""The tool `raptor_query`: build (or reuse) a tree over the sources, and ask it (RAPTOR
§3).

Not for: short pages, where `extract_relevant` is cheaper and says None when nothing
answers."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Final, Literal, NamedTuple

import anyio
from mcp_types import CallToolResult
from pydantic import Field

from errors import UsageError
from pipeline.document.page import Document, Failure, Page
from pipeline.evidence.assemble import Assembled, assemble
from pipeline.evidence.show import Sheet, hint_room, notice_within
from pipeline.fetch.handles import find_page, page_handle
from pipeline.question.broad import is_broad
from pipeline.question.question import Question
from pipeline.raptor.build import build_tree
from pipeline.raptor.evidence import fit_evidence
from pipeline.raptor.overview import overview
from pipeline.raptor.query import WALK, Mode, NodeMode, Traversal, query_tree, read_tree
from pipeline.raptor.summarise import Writer
from pipeline.raptor.tree import TREE_SCHEME, Tree, TreeOptions
from pipeline.raptor.write import is_extracted, write_tree
from pipeline.reading.extract import left_unread, read_documents
from pipeline.segment.idms import Idms
from pipeline.services import Services
from pipeline.sources.gather import (
    Loaded,
    in_part,
    load_sources,
    open_tree,
    room_for,
    store_for,
)
from pipeline.text.frame import new_mark, one_line
from pipeline.text.tokens import count_tokens
from pipeline.work import LONG_SHARE, STEP_SHARE, Report, in_thread, time_left
from tools.common.answer import (
    Ending,
    answer,
    behind,
    larger,
    notes_of,
    repeated,
)
from tools.common.context import (
    ToolContext,
    reporter,
    services_of,
)
from tools.common.results import Next, Quoted, shown_in
from tools.common.tool import Tool
from tools.common.view import draw_evidence

NAME: Final = "raptor_query"
WRITE_SHARE: Final = STEP_SHARE / 2
"""Share of the time limit for a generator's work: boundaries of idms leaves (the rest
is cut by embeddings), and index texts."""
NOTED: Final = 8
"""Part of a budget that lines on how the tree was made may take: one in eight."""
UNBUILT: Final = (
    "The tree is not built yet; these passages are from the documents. "
    "The same call continues building it."
)


class RaptorQueryResult(Quoted):
    """Structured result of `raptor_query`."""

    tree: str = Field(
        description="Handle of the tree; pass it as source to ask the same tree again"
    )
    mode: str
    layers: int
    leaves: int
    summaries: int


async def raptor_query(
    question: Annotated[
        str, Field(description="The question.", min_length=1, max_length=2000)
    ],
    sources: Annotated[
        list[str],
        Field(
            description="URLs, files, folders, handles.",
            min_length=1,
            max_length=50,
        ),
    ],
    ctx: ToolContext,
    mode: Annotated[
        Literal["guided", "collapsed", "traversal", "flat"],
        Field(description="guided suits most; collapsed adds summaries."),
    ] = "guided",
    max_tokens: Annotated[
        int, Field(description="Token budget.", ge=200, le=20000)
    ] = 2000,
    chunking: Annotated[
        Literal["sentences", "idms"], Field(description="idms: leaves by subject.")
    ] = "sentences",
    walk: Annotated[
        str,
        Field(
            description="traversal: nodes x layers.",
            pattern=r"^[1-9]\d?(x[1-9]\d?)?$",
        ),
    ] = f"{WALK.nodes}",
) -> Annotated[CallToolResult, RaptorQueryResult]:
    """Ask long documents (reports, books, whole folders) a question, through a RAPTOR
    tree; cites passages.

    "What is this about?" gives an outline, or a folder's themes. The tree's handle is
    the source of the next question. For single pages use extract_relevant."""
    services, report = services_of(ctx), reporter(ctx)
    about = Question(question)
    # 1. The tree: kept, grown, or built
    idms = _idms(services) if chunking == "idms" else None
    tree, loaded = await _tree(sources, about, chunking, services, report, idms)
    made = [*_cut_by(idms, tree), *(_written_later(tree, services) if tree else ())]
    partly = [
        in_part(one.url, one.unread, one.rest)
        for one in (tree.sources if tree else ())
        if one.unread
    ]
    failures = list(dict.fromkeys([*partly, *loaded.failures]))
    mark = new_mark()
    noted = min(max_tokens // NOTED, sum(count_tokens(line) + 1 for line in made))
    room = hint_room(max_tokens) + room_for(failures, max_tokens) + noted
    sheet = Sheet(max_tokens, reserve=room)
    sheet.add(notice_within(mark, max_tokens))
    # 2. Passages within the budget: units as the core reads them, or nodes of the tree
    asked = _asked(tree, loaded, mode, Traversal(*map(int, walk.split("x"))))
    found = await asked(about, services, max_tokens=sheet.room, mark=mark)
    failures += found.unread
    sheet.add(found.assembled.shown.text)
    sheet.release()
    # 3. How to go on
    following = [Next(tool=NAME, arguments={"sources": [tree.id]} if tree else {})]
    following += repeated(NAME, failures, beside=(tree.id,)) if tree else []
    following += larger(NAME, max_tokens) if tree and found.assembled.left_out else []
    pages = tuple(behind(found.assembled.evidence, found.documents))
    ending = Ending(NAME, sheet, following, failures, pages)
    hinted = tree is None or bool(hint_room(max_tokens))
    ending.write(partial(_write_tree, tree, made, hinted), hinted=hinted)
    data = _data(tree, mode, found, ending)
    data.notes = [*([] if tree else [UNBUILT]), *made, *notes_of(pages)]
    view = await draw_evidence(
        ctx, question, found.assembled, found.documents, None, max_tokens
    )
    return answer(sheet.text, data, view=view)


def _written_later(tree: Tree, services: Services) -> list[str]:
    """Have a generator, if one is set, write the summaries of a tree between calls;
    return a line about how far it is."""
    if services.generator is None or not is_extracted(tree) or "#" in tree.id:
        return []
    writer = Writer(services.generator, reader=services.reader)
    store = store_for((source.url for source in tree.sources), services)
    embedder = services.embedder
    write = partial(write_tree, tree, writer, embedder=embedder, store=store)
    services.later.begin(tree.id, lambda report: write(report=report))
    return list(filter(None, (services.later.reached(tree.id),)))


def _cut_by(idms: Idms | None, tree: Tree | None) -> list[str]:
    """Return what is to be said of how leaves were cut by their subjects."""
    return idms.notes if tree and idms else []


def _write_tree(
    tree: Tree | None, made: Sequence[str], hinted: bool, sheet: Sheet
) -> None:
    """Write how large the tree is, where that fits whole and is `hinted`; or, cut to
    what fits, that there is none yet; and how it was `made`."""
    if tree is None:
        sheet.add_cut(UNBUILT)
    elif hinted:
        sheet.add(f"Tree of {len(tree.leaves)} leaves in {len(tree.layers)} layers.")
    for line in made:
        sheet.add_cut(one_line(line))


def _data(
    tree: Tree | None,
    mode: str,
    found: "_Found",
    ending: Ending,
) -> RaptorQueryResult:
    facts: dict[str, object] = {
        "tree": tree.id if tree else "",
        "mode": mode if tree else "flat",
        "layers": len(tree.layers) if tree else 0,
        "leaves": len(tree.leaves) if tree else 0,
        "summaries": sum(node.is_summary for node in tree.nodes) if tree else 0,
    }
    shown = shown_in(found.assembled, found.documents)
    return RaptorQueryResult.model_validate(facts | shown | ending.facts)


class _Found(NamedTuple):
    """Passages, their documents, and sources that were not read in time."""

    assembled: Assembled
    documents: Sequence[Document]
    unread: Sequence[Failure] = ()


def _asked(
    tree: Tree | None, loaded: Loaded, mode: Mode, walk: Traversal
) -> Callable[..., Awaitable[_Found]]:
    if tree is None:
        return partial(_from_documents, loaded)
    if mode == "guided":
        return partial(_guided, tree)
    return partial(_by_nodes, tree, mode=mode, walk=walk)


async def _guided(
    tree: Tree, question: Question, services: Services, *, max_tokens: int, mark: str
) -> _Found:
    """Return the best units, or an overview if the question is about the whole, and
    their pages."""
    single = tree.sources[0] if len(tree.sources) == 1 else None
    titles = (
        [single.title, single.url.rpartition("/")[2].partition(".")[0]]
        if single
        else []
    )
    if is_broad(question.text, titles):
        at_hand = await _pages(tree, range(len(tree.sources) == 1), services)
        describe = partial(overview, tree, at_hand, max_tokens=max_tokens, mark=mark)
        return _Found(await in_thread(describe), list(at_hand.values()))
    pages = partial(_pages, tree, services=services)
    documents, reading = await read_tree(
        tree,
        question,
        pages,
        reader=services.reader,
        embedder=services.embedder,
        max_tokens=max_tokens,
    )
    fill = partial(assemble, documents, reading, max_tokens=max_tokens, mark=mark)
    # Leaves that replace a deleted page have no page to open.
    return _Found(
        await in_thread(fill),
        [document for document in documents if document.page.html],
    )


async def _by_nodes(
    tree: Tree,
    question: Question,
    services: Services,
    *,
    mode: NodeMode,
    walk: Traversal,
    max_tokens: int,
    mark: str,
) -> _Found:
    """Return leaves and summaries as they score in `mode`, and their pages."""
    passages = await query_tree(
        tree,
        question,
        mode=mode,
        max_tokens=max_tokens,
        embedder=services.embedder,
        walk=walk,
    )
    places = {
        document
        for passage in passages
        for document in tree.documents_below(passage.node)
    }
    documents = await _pages(tree, sorted(places), services)
    fit = partial(
        fit_evidence, tree, passages, documents, max_tokens=max_tokens, mark=mark
    )
    return _Found(await in_thread(fit), list(documents.values()))


def _idms(services: Services) -> Idms:
    return Idms(
        services.idms,
        generator=services.generator,
        embedder=services.embedder,
        store=services.stores.scores,
        seconds=services.seconds * WRITE_SHARE,
    )


async def _tree(
    sources: list[str],
    question: Question,
    chunking: Literal["sentences", "idms"],
    services: Services,
    report: Report,
    idms: Idms | None,
) -> tuple[Tree | None, Loaded]:
    """Return the tree of a handle, a tree grown from it by further sources, or a tree
    of the sources, and what was read for it; None if it is not built in time.

    Raises `UsageError` for two handles, an unknown handle, or sources of which none can
    be read."""
    handles = [source for source in sources if source.startswith(TREE_SCHEME)]
    if len(handles) > 1:
        raise UsageError(
            "Two trees cannot be combined.",
            hint="Pass one winnow://tree/ handle, and URLs and files.",
        )
    before = await in_thread(open_tree, handles[0], services) if handles else None
    named = [source for source in sources if source not in handles]
    if before is not None and not named:
        return before, Loaded((), ())
    standing = (
        await _pages(before, range(len(before.sources)), services) if before else {}
    )
    gone = (
        [s.url for place, s in enumerate(before.sources) if place not in standing]
        if before
        else []
    )
    seconds = services.seconds * STEP_SHARE
    loaded = await load_sources(
        [*gone, *named], services, seconds=seconds, report=report, question=question
    )
    # A page that is given again replaces its earlier version.
    fresh = {document.page.final_url for document in loaded.documents}
    kept = [
        document
        for document in standing.values()
        if document.page.final_url not in fresh
    ]
    loaded = replace(loaded, documents=(*kept, *loaded.documents))
    with anyio.move_on_after(LONG_SHARE * time_left()):
        tree = await build_tree(
            loaded.documents,
            embedder=services.embedder,
            options=before.built_with.options
            if before
            else TreeOptions(chunking, clustering=services.clustering),
            store=store_for(
                (document.page.final_url for document in loaded.documents), services
            ),
            report=report,
            grown_from=before,
            idms=idms,
        )
        return tree, loaded
    return None, loaded


async def _from_documents(
    loaded: Loaded,
    question: Question,
    services: Services,
    *,
    max_tokens: int,
    mark: str,
) -> _Found:
    """Return the best units of the documents, while the tree is not built."""
    seconds = LONG_SHARE * time_left()
    reading = await read_documents(
        question, loaded.documents, reader=services.reader, seconds=seconds
    )
    fill = partial(
        assemble,
        loaded.documents,
        replace(reading, verdict="unsure"),
        max_tokens=max_tokens,
        mark=mark,
    )
    return _Found(
        await in_thread(fill), loaded.documents, left_unread(reading, loaded.documents)
    )


async def _pages(
    tree: Tree, places: Iterable[int], services: Services
) -> dict[int, Document]:
    documents: dict[int, Document] = {}
    for place in places:
        source = tree.sources[place]
        named = Page(
            source.url,
            source.url,
            source.title,
            "",
            "",
            content_hash=source.content_hash,
        )
        page = await in_thread(find_page, services.stores.pages, page_handle(named))
        if page is not None:
            documents[place] = await services.documents.read(page)
    return documents


TOOL: Final = Tool(
    function=raptor_query,
    title="Ask long documents",
    command="raptor",
    help="ask long documents through a tree",
    advice="For long documents and folders: raptor_query, then ask again with the tree handle it returns.",
    place=50,
    heavy=True,
)
