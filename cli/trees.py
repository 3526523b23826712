"""`winnow raptor tree SOURCE…`: print a tree as an outline, and optionally write it as
HTML.

Without a time limit, a configured generator writes every summary. Not for:
asking a tree (`tools/raptor_query.py`).
"""

import sys
from pathlib import Path

from cli.output import COMMAND_SECONDS, OK, drawn_progress, print_json
from errors import UsageError
from pipeline.printed import printed
from pipeline.raptor.build import build_tree
from pipeline.raptor.draw import draw
from pipeline.raptor.leaves import Chunker
from pipeline.raptor.outline import outline
from pipeline.raptor.summarise import Writer
from pipeline.raptor.tree import TREE_SCHEME, Chunking, Tree, TreeOptions
from pipeline.services import Services
from pipeline.sources.gather import load_sources, open_tree, store_for
from pipeline.work import Report, in_thread, no_report
from server.reading import OUTLINE_TOKENS
from server.settings import Settings
from server.wiring import open_services


async def draw_tree(
    settings: Settings, sources: list[str], chunking: Chunking, html: str, as_json: bool
) -> int:
    """Build the tree of `sources` (or load a handle's), print its outline, write it to
    `html` if given.

    Overwrites `html`; raises `UsageError` if that cannot be written, which shows only
    after the tree was built.
    """
    async with open_services(settings) as services:
        options = TreeOptions(chunking, clustering=services.clustering)
        with drawn_progress(quiet=as_json) as drawn:
            tree = await _tree(services, sources, options, drawn or no_report)
    if html:
        try:
            Path(html).expanduser().write_text(
                await in_thread(draw, tree), encoding="utf-8"
            )
        except OSError as e:
            raise UsageError(
                f"{html} cannot be written: {e.strerror}.",
                hint="Give a file in a folder that you may write to.",
            ) from e
    text = await in_thread(outline, tree, max_tokens=OUTLINE_TOKENS)
    layers = [len(layer) for layer in tree.layers]
    if as_json:
        print_json({"tree": tree.id, "layers": layers, "html": html, "text": text})
    else:
        print(f"{text}\n{tree.id}" + (f"\n{html}" if html else ""))
    return OK


async def _tree(
    services: Services, sources: list[str], options: TreeOptions, report: Report
) -> Tree:
    if len(sources) == 1 and sources[0].startswith(TREE_SCHEME):
        return await in_thread(open_tree, sources[0], services)
    loaded = await load_sources(
        sources, services, seconds=COMMAND_SECONDS, report=report
    )
    for failure in loaded.failures:
        print(f"winnow: not read: {failure.source}: {failure.reason}", file=sys.stderr)
    idms: Chunker = printed("chunker")(
        services.idms,
        generator=services.generator,
        embedder=services.embedder,
        store=services.stores.scores,
        seconds=COMMAND_SECONDS,
    )
    tree = await build_tree(
        loaded.documents,
        embedder=services.embedder,
        options=options,
        store=store_for(
            (document.page.final_url for document in loaded.documents), services
        ),
        report=report,
        writer=Writer(services.generator, reader=services.reader)
        if services.generator
        else None,
        idms=idms,
    )
    for line in idms.notes if options.chunking == "idms" else ():
        print(f"winnow: {line}", file=sys.stderr)
    return tree
