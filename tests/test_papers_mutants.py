"""A row of `python -m papers` falls where what it says is no longer done: one replacement each."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.support import ROOT
from tests.support.extras import need


class Mutant(NamedTuple):
    """A replacement in a file, the row that must fall, and the extra that the row needs."""

    row: str
    path: str
    text: str
    replacement: str
    extra: str = ""


HTML: Final = "papers/htmlrag/blocks.py"
MEASURES: Final = "bench/paper_measures.py"
PARSER: Final = "papers/zero_index/parser.py"
LLAMA: Final = "models/llama/process.py"
PROMPT: Final = "prompts/prune_html.md"
ASKING: Final = "papers/zero_index/ask.py"
EXTRACTOR: Final = "papers/recipes/extractor.py"
ANSWER: Final = "pipeline/generated.py"
UNITS: Final = "pipeline/document/units.py"
SUMMARISE: Final = "papers/raptor/summarise.py"
QUERY: Final = "papers/raptor/query.py"
CLUSTER: Final = "papers/raptor/cluster.py"
GROWTH: Final = "papers/raptor/build.py"
PRUNE: Final = "papers/htmlrag/prune.py"
IDMS: Final = "papers/idms/idms.py"

MUTANTS: Final = (
    Mutant(
        "raptor.58",
        "pipeline/raptor/leaves.py",
        "return _gap(sentences, i) or (by_heading and _is_heading(document, sentences[i]))",
        "return _gap(sentences, i)",
    ),
    Mutant(
        "raptor.58",
        "pipeline/raptor/leaves.py",
        "SHORT_SHARE: Final = 0.4",
        "SHORT_SHARE: Final = 0.0",
    ),
    Mutant(
        "raptor.58",
        "pipeline/raptor/leaves.py",
        "return before.block == sentences[i].block, zlib.crc32(",
        "return before.block == sentences[i].block, -i\n    return False, zlib.crc32(",
    ),
    Mutant(
        "zero_index.2",
        PARSER,
        "if reason := needless(question.text):",
        "await ask(generator, [Said('user', 'x')], AskOptions(9, seconds, '', None), store=None)\n"
        "    if reason := needless(question.text):",
    ),
    Mutant("zero_index.2", "pipeline/sources/gather.py", "if parsed.needless:", "if False:"),
    Mutant(
        "zero_index.3",
        PARSER,
        "parts: list[str] = []\n",
        "return text\n        parts: list[str] = []\n",
    ),
    Mutant(
        "zero_index.5",
        PARSER,
        "parts: list[str] = []\n",
        "return text\n        parts: list[str] = []\n",
    ),
    Mutant("zero_index.21", "papers/recipes/configs/extractor_paper.toml", "rank = 64", "rank = 8"),
    Mutant(
        "zero_index.21", "papers/recipes/configs/extractor_paper.toml", "warmup = 0", "warmup = 500"
    ),
    Mutant(
        "zero_index.26", MEASURES, 'else "first" if taken[0] else "second"', 'else "first"', "llama"
    ),
    Mutant("zero_index.28", MEASURES, "np.argsort(-(self._vectors", "np.argsort((self._vectors"),
    Mutant(
        "zero_index.28", MEASURES, "range(-neighbours, neighbours + 1)", "range(0, neighbours + 1)"
    ),
    Mutant("zero_index.28", MEASURES, "count: int = 12", "count: int = 5"),
    Mutant("zero_index.28", MEASURES, "size: int = 512", "size: int = 530"),
    Mutant(
        "htmlrag.44",
        PROMPT,
        "**HTML**: ```$html```\n**Question**: **$question**\n",
        "**Question**: **$question**\n**HTML**: ```$html```\n",
    ),
    Mutant(
        "htmlrag.48",
        HTML,
        "log_probabilities.astype(np.float32)",
        "log_probabilities.astype(np.float32)[::-1]",
        "llama",
    ),
    Mutant(
        "htmlrag.49",
        "models/llama/token_tree.py",
        "if among_siblings and len(tokens) == 1",
        "if False",
    ),
    Mutant("htmlrag.50", LLAMA, "grow(sorted(paths))", "grow(paths)", "llama"),
    Mutant(
        "htmlrag.50",
        "models/llama/token_tree.py",
        "for beginning, tokens in tree.items():",
        "for beginning, tokens in sorted(tree.items(), key=lambda one: len(one[0])):",
        "llama",
    ),
    Mutant("htmlrag.52", HTML, "PROMPT_BUDGETS: Final = 2", "PROMPT_BUDGETS: Final = 4"),
    Mutant("htmlrag.55", "papers/recipes/configs/pruner_paper.toml", 'kind = "printed"\n', ""),
    Mutant(
        "htmlrag.56",
        MEASURES,
        "normalised(answer) in [normalised(gold) for gold in golds]",
        "any({*normalised(gold)} <= {*normalised(answer)} for gold in golds)",
        "llama",
    ),
    Mutant("htmlrag.56", MEASURES, "* min(1.0, np.exp(1 - len(true) / len(said)))", "", "llama"),
    Mutant("htmlrag.56", MEASURES, "float(any(f", "float(all(f", "llama"),
    Mutant("raptor.58", UNITS, "UNIT_CHARACTERS: Final = 600", "UNIT_CHARACTERS: Final = 6000"),
    Mutant("raptor.61", CLUSTER, "math.isqrt(len(part) - 1)", "30", "papers"),
    Mutant(
        "raptor.61", CLUSTER, "_mixed(layer, rough, 10 if by_umap else None)", "[rough]", "papers"
    ),
    Mutant("raptor.62", CLUSTER, "    _, size = min(fits)\n", "    size = 7\n", "papers"),
    Mutant(
        "raptor.64",
        GROWTH,
        "key=lambda i: self.leaves[i].document",
        "key=lambda i: 0",
    ),
    Mutant("raptor.65", SUMMARISE, '[Said("user", asked)]', '[Said("system", asked)]'),
    Mutant("raptor.66", GROWTH, "                if by_leaves\n", "                if False\n"),
    Mutant(
        "raptor.66",
        GROWTH,
        "np.stack([self._vector(i) for i in group])",
        "self._mean_vectors(nodes)",
    ),
    Mutant(
        "raptor.69",
        QUERY,
        "shared[list(node.leaves)].mean()",
        "shared[list(node.leaves)].max()",
    ),
    Mutant(
        "raptor.73",
        SUMMARISE,
        "if await in_thread(supports, asked, units, relevance):",
        "if True:",
    ),
    Mutant(
        "raptor.62", CLUSTER, "MOST_CLUSTERS: Final = 50", "MOST_CLUSTERS: Final = 12", "papers"
    ),
    Mutant(
        "raptor.63",
        CLUSTER,
        "waiting.append(group)",
        "clusters += _capped(layer, group, most=len(group))",
        "papers",
    ),
    Mutant(
        "raptor.65",
        "papers/raptor/tree.py",
        "summary_tokens: int = 130",
        "summary_tokens: int = 400",
    ),
    Mutant(
        "raptor.65",
        "prompts/tree_summary.md",
        "Keep as many of their key details as fit",
        "Be short",
    ),
    Mutant(
        "zero_index.4",
        "pipeline/search/service.py",
        'if query.since or query.until or query.freshness == "any":',
        "if True:",
    ),
    Mutant("zero_index.8", "papers/recipes/parser.py", '"language": "en"', '"language": "de"'),
    Mutant("htmlrag.54", "papers/recipes/pruner.py", "[one.gold]}{one.content}", "[one.gold]}"),
    Mutant(
        "htmlrag.54",
        "papers/recipes/pruner.py",
        "prompt, paths, chosen, content)",
        "prompt, paths, 0, content)",
    ),
    Mutant(
        "idms.76",
        "papers/idms/partition.py",
        "SEGMENT_ITEMS: Final = 64",
        "SEGMENT_ITEMS: Final = 200",
    ),
    Mutant(
        "raptor.70",
        "papers/raptor/query.py",
        "cosines(tree.vectors, vector)",
        "-cosines(tree.vectors, vector)",
        "papers",
    ),
    Mutant("zero_index.8", "papers/recipes/parser.py", "invented=kind == 1", "invented=False"),
    Mutant("zero_index.8", "papers/recipes/parser.py", "word in named or", "word not in named and"),
    Mutant("zero_index.8", "papers/recipes/parser.py", "query = name.join(", "'-'.join("),
    Mutant("zero_index.8", "papers/recipes/parser.py", "if kind == 2 and names", "if kind == 9"),
    Mutant("zero_index.8", "papers/recipes/parser.py", "elif kind == 3", "elif kind == 9"),
    Mutant(
        "zero_index.11",
        "pipeline/sources/gather.py",
        "keywords=[query.text for query in parsed.queries if query.guessed]",
        "keywords=[]",
    ),
    Mutant(
        "zero_index.11",
        "papers/zero_index/ranking.py",
        "if reranker is not None:",
        "if reranker is not None and embedder is None:",
    ),
    Mutant(
        "zero_index.9",
        "pipeline/search/chain.py",
        "joined.insert(number * SEAT - 1, guess)",
        "joined.append(guess)",
    ),
    Mutant(
        "zero_index.12",
        "pipeline/sources/gather.py",
        "ranked = ranked[: order.max_pages]",
        "ranked = ranked[:]",
    ),
    Mutant(
        "zero_index.12",
        "pipeline/sources/gather.py",
        "ranked = ranked[: order.max_pages]",
        "ranked = ranked[-order.max_pages :]",
    ),
    Mutant("zero_index.13", UNITS, "(?P<stop>[.!?…", "(?P<stop>[.?…"),
    Mutant("zero_index.13", UNITS, "(?P<stop>[.!?…", "(?P<stop>[.!…"),
    Mutant(
        "zero_index.15",
        ASKING,
        "for candidate in candidates[: None",
        "for candidate in sorted(candidates, key=lambda one: one.row)[: None",
    ),
    Mutant("zero_index.16", ASKING, '("," tag){{0,{ROOM.tags - 1}}}', '("," tag)*'),
    Mutant("zero_index.16", ASKING, "KEPT_SENTENCES: Final = 6", "KEPT_SENTENCES: Final = 2"),
    Mutant("zero_index.16", ASKING, "most = ROOM.tags if whole else 2 * ROOM.ranges", "most = 3"),
    Mutant("zero_index.18", EXTRACTOR, 'f"{cut_to_tokens(text, SUMMARY)}: {', 'f"some words: {'),
    Mutant("zero_index.18", EXTRACTOR, '"\\n".join(said) or "None"', '"\\n".join(said) or "No"'),
    Mutant(
        "zero_index.19",
        EXTRACTOR,
        "place for place, line in enum",
        "place % len(lines) + 1 for place, line in enum",
    ),
    Mutant("zero_index.20", EXTRACTOR, "FEWEST: Final = 100", "FEWEST: Final = 0"),
    Mutant("zero_index.20", EXTRACTOR, "yield from filter(_is_long, _s", "yield from (_s"),
    Mutant("zero_index.20", EXTRACTOR, ": printed_samples,", ": extractor_samples,"),
    Mutant("zero_index.21", "papers/recipes/sample.py", '    "k_proj",\n', ""),
    Mutant(
        "zero_index.22",
        "papers/recipes/configs/extractor_dpo_paper.toml",
        "rate = 5e-7",
        "rate = 5e-6",
    ),
    Mutant("zero_index.23", EXTRACTOR, "return rng.choice(ways)", "return set()"),
    Mutant("zero_index.24", ANSWER, "list(passages.items())[:count]", "list(passages.items())[:1]"),
    Mutant("zero_index.25", ANSWER, "CheckedSentence(text, labels", 'CheckedSentence("x", labels'),
    Mutant("zero_index.25", ANSWER, '"maxItems": 3}', '"maxItems": 9}'),
    Mutant("zero_index.25", ANSWER, '"maxLength": 200}', '"maxLength": 900}'),
    Mutant(
        "zero_index.30",
        "bench/recipes.py",
        "nothing.append(float(not chosen))",
        "nothing.append(0.0)",
    ),
    Mutant(
        "zero_index.30",
        "bench/recipes.py",
        "float(chosen == gold)",
        "float(not chosen and not gold)",
    ),
    Mutant(
        "zero_index.30", "bench/recipes.py", "some.append((f1(gold, chosen)", "some.append((0.0"
    ),
    Mutant("htmlrag.32", "readers/html/names.py", '(PLACE, "lang", "role")', '(PLACE, "role")'),
    Mutant(
        "htmlrag.32",
        "readers/html/names.py",
        '"ol": ("start", "reversed"),',
        '"ol": ("start", "reversed"), "p": ("title",),',
    ),
    Mutant(
        "htmlrag.32",
        "readers/html/names.py",
        '"th": ("colspan", "rowspan", "scope")',
        '"th": ("colspan", "rowspan")',
    ),
    Mutant("htmlrag.33", "readers/tree.py", 'tags("blockquote caption dd', 'tags("caption dd'),
    Mutant(
        "htmlrag.42",
        "bench/papers_html.py",
        '("without the block tree", 2,',
        '("without the block tree", 256,',
    ),
    Mutant(
        "htmlrag.42",
        "bench/papers_html.py",
        "cut_to_tokens(raw(one.page), most)",
        "cut_to_tokens(to_html(page.root), most)",
    ),
    Mutant(
        "htmlrag.42",
        "bench/papers_html.py",
        '"without HTML (chunks of text)": "\\n".join(chunks)',
        '"without HTML (chunks of text)": page.html',
    ),
    Mutant(
        "htmlrag.57",
        "readers/text/plain.py",
        "page = plain_to_html(text)",
        "page = plain_to_html(text * 2)",
    ),
    Mutant("htmlrag.33", HTML, "return compressed(node)", "return node"),
    Mutant("htmlrag.34", HTML, "return compressed(node)", "return node"),
    Mutant("htmlrag.35", "readers/html/names.py", " script source ", " source "),
    Mutant(
        "htmlrag.38",
        PRUNE,
        "words = block_words // 2",
        "words = 2 * block_words // 3",
    ),
    Mutant("htmlrag.41", HTML, "kept := unwrapped(left(child, name))", "kept := left(child, name)"),
    Mutant(
        "htmlrag.41",
        HTML,
        "roots, shown = await in_thread(adjusted_pages, self._documents, found)",
        "roots, shown = [one.root for one in self._documents], found",
    ),
    Mutant("htmlrag.40", HTML, "extend([child] if path in paths else [])", "append(child)"),
    Mutant(
        "raptor.60",
        CLUSTER,
        "SPILL_SHARE: Final = 0.15",
        "SPILL_SHARE: Final = 0.5",
        "papers",
    ),
    Mutant(
        "raptor.63",
        CLUSTER,
        "clusters += _capped(layer, group, most=len(group))",
        "clusters += [group] if by_umap else _capped(layer, group, most=len(group))",
        "papers",
    ),
    Mutant(
        "raptor.68",
        QUERY,
        "order = [i for i in order if i in walked]",
        "order = sorted(walked)",
    ),
    Mutant("raptor.69", QUERY, ' or tree.built_with.nodes.clustering != "kmeans"', ""),
    Mutant(
        "raptor.69", QUERY, "if triples and 2 * len(triples & said)", "if 0 * len(triples & said)"
    ),
    Mutant(
        "raptor.72",
        "bench/papers_raptor.py",
        "tuple(group[start : start + CHILDREN])",
        "tuple(group[start::CHILDREN])",
    ),
    Mutant(
        "raptor.73",
        SUMMARISE,
        "*(name for name in _names(sentence) if not _is_known(name, said)),",
        "",
    ),
    Mutant(
        "raptor.74",
        "bench/longdoc.py",
        "covered[max(low, start) - start : min(high, end) - start] = True",
        "covered[:] = True",
    ),
    Mutant("raptor.74", MEASURES, "for n in range(1, 5)", "for n in range(1, 2)"),
    Mutant("raptor.74", MEASURES, "np.exp(np.mean(logs))", "np.exp(logs[-1])"),
    Mutant(
        "idms.75",
        IDMS,
        "margins.append(float(answer[0]))",
        "margins.append(float(answer[0]))\n            if gap == len(texts) - 3:\n                break",
    ),
    Mutant("idms.75", IDMS, "one_line(text)[: self._longest]", "one_line(text)"),
    Mutant(
        "idms.75", IDMS, "while sum(sizes[shown : gap + 1]) > self._window and", "while False and"
    ),
    Mutant("idms.76", IDMS, "float(np.mean(margins[1:] or margins))", "0.0"),
    Mutant(
        "idms.78", "papers/idms/density.py", "max(10, count_tokens(text))", "count_tokens(text)"
    ),
    Mutant("htmlrag.39", PRUNE, " or not embedder.reads(question.text)", ""),
    Mutant("htmlrag.45", HTML, "self._first = 0 if trained else 1", "self._first = 1"),
    Mutant("idms.78", "papers/idms/density.py", "-1.0 if reading.printed else 0.0", "0.0"),
    Mutant("idms.80", LLAMA, "model.n_tokens = shared\n", "model.n_tokens = shared = 0\n", "llama"),
    Mutant("zero_index.1", ASKING, 'if way == "pages" and chosen.rows:', "if False:"),
    Mutant(
        "zero_index.5",
        "pipeline/text/words.py",
        '_GLOSSES.glob("*.txt")',
        '_GLOSSES.glob("de.txt")',
    ),
    Mutant(
        "zero_index.5",
        PARSER,
        "left = len(self._folded) if foreign else 0",
        "left = 99 if foreign else 0",
    ),
    Mutant(
        "zero_index.7",
        "papers/recipes/configs/parser_paper.toml",
        "samples = 10000",
        "samples = 5000",
    ),
    Mutant("zero_index.9", "pipeline/search/chain.py", "empties > 1", "empties > 2"),
    Mutant(
        "zero_index.14",
        "papers/zero_index/tags.py",
        "return _TAG_OPENING.sub(_DEFUSED, one_line(text))",
        "return one_line(text)",
    ),
    Mutant(
        "zero_index.19",
        EXTRACTOR,
        "load_own(part), rng):\n        plain",
        "load_public(part), rng):\n        plain",
    ),
    Mutant("zero_index.26", MEASURES, '"second", "bias"]', '"second", "bias", "tie"]'),
    Mutant("htmlrag.33", "readers/tree.py", "li summary td th", "li summary"),
    Mutant(
        "htmlrag.33",
        "readers/tree.py",
        'hgroup section search")\n"""Blocks',
        'hgroup section search main")\n"""Blocks',
    ),
    Mutant("htmlrag.37", "papers/htmlrag/block_tree.py", "queue.popleft()", "queue.pop()"),
    Mutant(
        "htmlrag.42",
        HTML,
        "min(scorer.max_tokens, max(FEWEST_SHOWN, PROMPT_BUDGETS * budget))",
        "scorer.max_tokens",
    ),
    Mutant(
        "htmlrag.43",
        PRUNE,
        'int(setting.partition(":")[2] or PAPER_WORDS)',
        "PAPER_WORDS",
    ),
    Mutant(
        "htmlrag.43",
        "bench/papers_html.py",
        'PruneOptions(most, "html"),\n                    embedder=bench.embedder,\n                    block',
        'PruneOptions(most // (1 + 7 * (words > 256)), "html"),\n'
        "                    embedder=bench.embedder,\n                    block",
    ),
    Mutant("htmlrag.51", HTML, "HEAD_WORDS: Final = 4", "HEAD_WORDS: Final = 3"),
    Mutant("htmlrag.52", PRUNE, "order[max(len(kept), number < options.part) :]", "order[1:]"),
    Mutant(
        "htmlrag.52",
        PRUNE,
        "[*scored, *range(len(scored), len(found.blocks))]",
        "list(range(len(found.blocks)))",
    ),
    Mutant(
        "raptor.59",
        "models/backends/onnx.py",
        "return OnnxEmbedder(_OURS[name])",
        "return OnnxEmbedder()",
    ),
    Mutant(
        "raptor.59",
        "pipeline/raptor/build.py",
        'name = reading.name if reading else "lexical"',
        'name = "lexical"',
    ),
    Mutant(
        "raptor.60",
        "papers/raptor/tree.py",
        'clustering: Clustering = "kmeans"',
        'clustering: Clustering = "gmm"',
        "papers",
    ),
    Mutant("raptor.63", CLUSTER, "if n <= DIMENSIONS + 1:", "if n <= 9:", "papers"),
    Mutant(
        "raptor.72",
        "bench/papers_raptor.py",
        "other, vector, range(1, len(other.layers))",
        "other, vector, ()",
    ),
    Mutant("raptor.74", MEASURES, "# The judge\n", "def meteor() -> None: ...\n\n\n# The judge\n"),
    Mutant(
        "idms.76",
        IDMS,
        "if margins[-1] <= threshold else []",
        "if margins[-1] <= threshold or gap + 1 - edges[-1] == 64 else []",
    ),
)


def test_what_a_mutant_replaces_is_there_once() -> None:
    counts = {
        (one.path, one.text): (ROOT / one.path).read_text("utf-8").count(one.text)
        for one in MUTANTS
    }
    assert {own for own, count in counts.items() if count != 1} == set()


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout beside the data sets."""
    copy = tmp_path_factory.mktemp("mutants") / "house"
    skipped = shutil.ignore_patterns(".git", ".venv", ".*cache", "__pycache__", "build", "dist")
    shutil.copytree(ROOT, copy, ignore=skipped)
    if (ROOT.parent / "shared").exists():
        (copy.parent / "shared").symlink_to((ROOT.parent / "shared").resolve())
    return copy


@pytest.mark.nightly
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda one: f"{one.row} {one.replacement[:30]}")
def test_a_row_falls_where_it_is_not_done(mutant: Mutant, house: Path) -> None:
    if mutant.extra:
        need(mutant.extra)
    path = house / mutant.path
    source = path.read_text("utf-8")
    path.write_text(source.replace(mutant.text, mutant.replacement), "utf-8")
    try:
        ran = subprocess.run(
            [sys.executable, "-m", "papers", mutant.row],
            cwd=house,
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
        )
    finally:
        path.write_text(source, "utf-8")
    if " cannot be had: " in ran.stdout and ": here: " in ran.stdout:
        pytest.skip(ran.stdout.strip())
    assert f"FELL  {mutant.row} " in ran.stderr, ran.stdout + ran.stderr
