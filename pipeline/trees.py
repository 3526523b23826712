"""A tree over named sources, asked: kept, grown or built, and the passages within a
budget.

Not for: the tree itself and its nodes' scores (`pipeline/raptor`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Literal

import anyio
import numpy as np

from errors import ModelError, UsageError
from pipeline.answer import Answer, Read, answer, read_within
from pipeline.evidence.show import Sheet, hint_room, notice_within
from pipeline.fetch.handles import find_page, page_handle
from pipeline.printed import printed
from pipeline.question.broad import is_broad
from pipeline.question.question import Question
from pipeline.raptor.build import build_tree
from pipeline.raptor.leaves import Chunker
from pipeline.raptor.overview import overview
from pipeline.raptor.query import read_leaves
from pipeline.raptor.tree import TREE_SCHEME, Chunking, Tree, TreeOptions
from pipeline.reading.extract import model_failure
from pipeline.reading.reading import Reading
from pipeline.services import Services
from pipeline.sources.gather import (
    Loaded,
    in_part,
    load_sources,
    open_tree,
    room_for,
    store_for,
)
from pipeline.text.frame import new_delimiter, one_line
from pipeline.text.tokens import count_tokens
from pipeline.work import STEP_SHARE, Report, in_thread, time_left
from readers.page import Document, Failure, Page

WRITE_SHARE: Final = STEP_SHARE / 2
"""Share of the time limit for a generator's work: boundaries of idms leaves (the rest
is cut by embeddings), and index texts."""
NOTED: Final = 8
"""Part of a budget that lines on how the tree was made may take: one in eight."""
UNBUILT: Final = (
    "The tree is not built yet; these passages are from the "
    "documents. Repeat the call to continue building it."
)


UNSCORED: Final = Reading(
    "unsure", "", 0.0, (), np.zeros(0, dtype=np.float32), "embedding"
)
"""Where nodes of a tree are scored instead of units."""
TreeMode = Literal["guided", "collapsed", "traversal"]
"""`guided` by leaves; the others by nodes above them, as RAPTOR prints it."""


@dataclass(frozen=True, slots=True)
class TreeOrder:
    """How the tree is built where there is none yet, and how it is asked."""

    chunking: Chunking
    mode: TreeMode
    walk: tuple[int, ...]
    """Of a traversal: nodes, then layers."""
    max_tokens: int


@dataclass(frozen=True, slots=True)
class AskedTree:
    """The answer of a tree, and how the tree was made."""

    tree: Tree | None
    """None if it is not built in time: then the passages are from the documents."""
    answer: Answer
    made: Sequence[str]
    """Lines on how the tree was made."""

    def write_tree(self, sheet: Sheet, *, sized: bool) -> None:
        """Write that there is no tree yet, or, if `sized`, how large it is; and how it
        was made."""
        if self.tree is None:
            sheet.add_cut(UNBUILT)
        elif sized:
            sheet.add(f"Tree of {len(self.tree.leaves)} leaves.")
        for line in self.made:
            sheet.add_cut(one_line(line))


async def ask_tree(
    question: Question,
    sources: Sequence[str],
    order: TreeOrder,
    services: Services,
    report: Report,
) -> AskedTree:
    """Return the passages that a tree over `sources` finds for a question.

    Raises `UsageError` for two trees, and what `load_sources` and `open_tree` raise.
    """
    # 1. Load: the tree is kept, grown, or built
    idms = _idms(services) if order.chunking == "idms" else None
    tree, loaded = await _tree(sources, question, order, services, report, idms)
    notes = list(idms.notes if tree and idms else ())
    partly = [
        in_part(source.url, source.unread, source.rest)
        for source in (tree.sources if tree else ())
        if source.unread
    ]
    failures = list(dict.fromkeys([*partly, *loaded.failures]))
    budget = order.max_tokens
    noted = sum(count_tokens(line) + 1 for line in notes)
    reserve = hint_room(budget) + min(budget // NOTED, noted)
    # 2.-7. Read the units of the best leaves, and answer
    read: Read
    if tree is None or not tree.leaves:
        read = partial(_unbuilt, question, services, loaded.documents)
    else:
        pages = partial(_pages, tree, services=services)
        if order.mode != "guided" or _is_broad(tree, question):
            described = await _described(
                tree, order, question, services, failures, reserve
            )
            return AskedTree(tree, described, notes)
        read = partial(
            read_leaves,
            tree,
            question,
            pages,
            reader=services.reader,
            embedder=services.embedder,
            max_tokens=budget,
        )
    answered = await answer(read, failures, max_tokens=budget, reserve=reserve)
    return AskedTree(tree, answered, notes)


async def _unbuilt(
    question: Question, services: Services, documents: Sequence[Document]
) -> tuple[Sequence[Document], Reading]:
    """Return documents and their reading while their tree is not built: never a `none`
    and never sure, since it may have been read in a hurry."""
    _, reading = await read_within(question, services, documents)
    return documents, replace(reading, verdict="unsure")


def _is_broad(tree: Tree, question: Question) -> bool:
    """Return whether a question is about all of a tree."""
    titles: list[str] = []
    if len(tree.sources) == 1:
        (source,) = tree.sources
        titles = [source.title, source.url.rpartition("/")[2].partition(".")[0]]
    return is_broad(question.text, titles)


async def _described(
    tree: Tree,
    order: TreeOrder,
    question: Question,
    services: Services,
    failures: Sequence[Failure],
    reserve: int,
) -> Answer:
    """Return an overview of a tree, or, in a mode of the paper, its leaves and summaries
    as they score: no unit is scored, and nothing judged."""
    delimiter, budget = new_delimiter(), order.max_tokens
    sheet = Sheet(budget, reserve=reserve + room_for(failures, budget))
    sheet.add(notice_within(delimiter, budget))
    pages = partial(_pages, tree, services=services)
    documents: Mapping[int, Document]
    if order.mode == "guided":
        documents = await pages(range(len(tree.sources) == 1))
        assembled = await in_thread(
            overview, tree, documents, max_tokens=sheet.room, delimiter=delimiter
        )
    else:
        assembled, documents = await printed("ask_nodes")(
            tree,
            question,
            services,
            mode=order.mode,
            walk=order.walk,
            pages=pages,
            max_tokens=sheet.room,
            delimiter=delimiter,
        )
    sheet.add(assembled.shown.text)
    sheet.release()
    of_pages = list(documents.values())
    return Answer(of_pages, failures, UNSCORED, sheet, assembled, delimiter)


def _idms(services: Services) -> Chunker:
    chunker: Chunker = printed("chunker")(
        services.idms,
        generator=services.generator,
        embedder=services.embedder,
        store=services.stores.scores,
        seconds=services.seconds * WRITE_SHARE,
    )
    return chunker


async def _tree(
    sources: Sequence[str],
    question: Question,
    order: TreeOrder,
    services: Services,
    report: Report,
    idms: Chunker | None,
) -> tuple[Tree | None, Loaded]:
    """Return the tree of a handle, a tree grown from it by further sources, or a tree
    of the sources, and what was read for it; None if it is not built in time.

    Raises `UsageError` for two handles, an unknown handle, or sources of which none can
    be read."""
    handles = [source for source in sources if source.startswith(TREE_SCHEME)]
    if len(handles) > 1:
        raise UsageError(
            "Two trees cannot be combined.",
            hint="Pass one winnow://tree/ handle, and the sources of the other trees as URLs or files.",
        )
    before = await in_thread(open_tree, handles[0], services) if handles else None
    addresses = [source for source in sources if source not in handles]
    standing: dict[int, Document] = {}
    missing: list[str] = []
    options = TreeOptions(order.chunking)
    if before is not None:
        if not addresses:
            return before, Loaded((), ())
        standing = await _pages(before, range(len(before.sources)), services)
        missing = [
            source.url for n, source in enumerate(before.sources) if n not in standing
        ]
        options = before.built_with.options
    seconds = services.seconds * STEP_SHARE
    loaded = await load_sources(
        [*missing, *addresses],
        services,
        seconds=seconds,
        report=report,
        question=question,
    )
    # A page that is given again replaces its earlier version.
    loaded_urls = {document.page.final_url for document in loaded.documents}
    unchanged = [
        document
        for document in standing.values()
        if document.page.final_url not in loaded_urls
    ]
    loaded = replace(loaded, documents=(*unchanged, *loaded.documents))
    build = partial(
        build_tree,
        loaded.documents,
        options=options,
        store=store_for(
            (document.page.final_url for document in loaded.documents), services
        ),
        report=report,
        grown_from=before,
        idms=idms,
    )
    # Until its share of the whole call ends: a load that was slow takes none of the time
    # in which the documents are read where the tree is not built.
    with anyio.move_on_after(time_left() - STEP_SHARE * services.seconds):
        try:
            return await build(embedder=services.embedder), loaded
        except ModelError as error:
            failures = (*loaded.failures, model_failure(str(error)))
            return await build(embedder=None), replace(loaded, failures=failures)
    return None, loaded


async def _pages(
    tree: Tree, places: Iterable[int], services: Services
) -> dict[int, Document]:
    documents: dict[int, Document] = {}
    for index in places:
        source = tree.sources[index]
        stub = Page(
            source.url,
            source.url,
            source.title,
            "",
            "",
            content_hash=source.content_hash,
        )
        page = await in_thread(find_page, services.stores.pages, page_handle(stub))
        if page is not None:
            documents[index] = await services.documents.read(page)
    return documents
