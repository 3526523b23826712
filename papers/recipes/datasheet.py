"""Writes what each recipe learns from: sets, licences, counts, and what was left out since it
judges us.

    python -m papers.recipes.datasheet            # writes papers/recipes/DATASHEET.md
    python -m papers.recipes.datasheet --check    # exits 1 where 13 words in a row judge us, too

Not for: the reader's data, which has a sheet of its own (`models/embedded`), or making samples (the
recipes' files).
"""

import argparse
import statistics
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from papers.recipes.extractor import extractor_samples, preference_pairs
from papers.recipes.parser import parser_samples
from papers.recipes.pruner import path_answers
from papers.recipes.sample import Maker
from papers.recipes.summariser import articles_of, summary_answers
from pipeline.text.tokens import count_tokens
from train.reader.data import Corpus, Text, judged_rows, load_own, load_public, own_rows
from train.reader.overlap import RUN, findings

SHEET: Final = Path(__file__).with_name("DATASHEET.md")
MAKERS: Final[dict[str, Maker]] = {
    "parser": parser_samples,
    "extractor": extractor_samples,
    "extractor_dpo": preference_pairs,
    "pruner": path_answers,
    "summariser": summary_answers,
}
"""What makes the samples of a run, by its name."""
LICENCES: Final = {
    "own": "questions ours; pages CC BY 4.0 (WCXB) and CC BY-SA 4.0 (Wikipedia)",
    "squad2": "CC BY-SA 4.0",
    "new_wiki": "CC BY 4.0",
    "reddit": "posts' rights unclear: trained on, not shipped",
    "nqg": "CC BY-SA 4.0",
    "kou": "CC BY-SA 4.0",
    "selqa": "Apache-2.0, texts of Wikipedia",
    "fairy": "Apache-2.0",
    "qed": "CC BY-SA 3.0",
    "clapnq": "Apache-2.0, texts of Wikipedia",
    "wtq": "CC BY-SA 4.0",
    "feta": "CC BY-SA 4.0",
    "tat": "CC BY 4.0",
}
"""Of the sets, as `../shared/data/train` and `train/reader/questions` say."""


def learned_from() -> Corpus:
    """Return all that samples are made from: texts, and the questions on them."""
    public, own = load_public("train"), load_own("train")
    return Corpus(
        public.texts | own.texts | articles(), public.questions + own.questions
    )


def articles() -> dict[str, Text]:
    """Return the whole articles that summaries are made of."""
    return {f"{row['id']}:article": _text(row) for row in articles_of("train")}


def _text(row: Mapping[str, Any]) -> Text:
    sentences = [sentence for part in row["paras"] for sentence in part]
    return Text(sentences, [row["title"]] * len(sentences))


def sheet() -> str:
    """Return the datasheet, as Markdown; the samples of the recipes' own seed are counted."""
    sentences, questions = judged_rows()
    held = sum(row["split"] == "held" for row in own_rows())
    lines = [
        "# What the recipes learn from",
        "",
        "Written by `python -m papers.recipes.datasheet`. A sample is made by rule from a question, page "
        "or article of the sets",
        "below; no model and no network takes part.",
        "",
        f"Left out because they judge us: {sentences} sentences of public sets, blanked, and "
        f"{questions} questions",
        f"that they answer or that an evaluation set has; {held} questions on sites held aside.",
        f"`--check` looks for {RUN} equal words in a row between all of it and the evaluation's "
        f"questions and texts.",
        "",
    ]
    for name, make in MAKERS.items():
        parts = {part: list(make(part, 0)) for part in ("train", "dev")}
        length = statistics.median(count_tokens(one.prompt) for one in parts["train"])
        counted = {
            part: Counter(one.source.partition("-")[0] for one in made)
            for part, made in parts.items()
        }
        none = sum(one.answer == "None" for one in parts["train"]) / len(parts["train"])
        lines += [
            f"## {name}",
            "",
            f"Median prompt {length:.0f} tokens."
            + f" None answers {none:.0%}." * (none > 0),
            "",
        ]
        lines += ["| set | train | dev | licence |", "|---|---|---|---|"]
        for source, count in counted["train"].most_common():
            lines.append(
                f"| {source} | {count:,} | {counted['dev'][source]:,} | {LICENCES[source]} |"
            )
        lines.append(f"| all | {len(parts['train']):,} | {len(parts['dev']):,} | |")
        lines.append("")
    return "\n".join(lines)


def main() -> int:
    """Write the sheet, or look for overlaps; return 1 where one is found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true")
    if not parser.parse_args().check:
        SHEET.write_text(sheet(), encoding="utf-8")
        return 0
    found = findings(learned_from())
    for kind, texts in found.items():
        print(f"{kind}: {len(texts)}", *texts[:20], sep="\n  ")
    return int(any(found.values()))


if __name__ == "__main__":
    sys.exit(main())
