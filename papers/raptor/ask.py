"""What `mode="collapsed"` and `mode="traversal"` of `raptor_query` ask: the nodes above
the leaves of a tree, built at the first question."""

from collections.abc import Mapping, Sequence
from functools import partial

from papers.raptor.build import grow_tree
from papers.raptor.evidence import fit_evidence
from papers.raptor.query import NodeMode, Traversal, query_tree
from papers.raptor.summarise import Writer
from papers.raptor.tree import NodeOptions
from pipeline.evidence.assemble import Assembled
from pipeline.question.question import Question
from pipeline.raptor.query import Pages
from pipeline.raptor.tree import Tree
from pipeline.services import Services
from pipeline.sources.gather import store_for
from pipeline.work import in_thread
from readers.page import Document


async def ask_nodes(  # noqa: PLR0913  a question to a tree, each part by its name
    tree: Tree,
    question: Question,
    services: Services,
    *,
    mode: NodeMode,
    walk: Sequence[int],
    pages: Pages,
    max_tokens: int,
    delimiter: str,
) -> tuple[Assembled, Mapping[int, Document]]:
    """Return the leaves and summaries that answer `question` best, and their pages.

    A generator, where one is set, writes the summaries: what it wrote is kept, so that
    a call that is cut short is gone on from.

    Args:
        walk: Of a traversal: most nodes of a layer, then layers.
        pages: Gives the pages with some indices into `tree.sources`.

    Raises:
        UsageError: The question is empty.
        ModelError: The embedder failed.
        MissingExtra: `gmm` or `umap` was chosen without the extra `papers`.
    """
    made = tree.built_with.options
    options = NodeOptions(made.chunking, made.leaf_tokens, services.clustering)
    generator = services.generator
    grown = await grow_tree(
        tree,
        embedder=services.embedder,
        options=options,
        store=store_for((source.url for source in tree.sources), services),
        writer=Writer(generator, reader=services.reader) if generator else None,
    )
    passages = await query_tree(
        grown,
        question,
        mode=mode,
        max_tokens=max_tokens,
        embedder=services.embedder,
        walk=Traversal(*walk),
    )
    places = {place for one in passages for place in grown.documents_below(one.node)}
    documents = await pages(sorted(places))
    fit = partial(
        fit_evidence,
        grown,
        passages,
        documents,
        max_tokens=max_tokens,
        delimiter=delimiter,
    )
    return await in_thread(fit), documents
