"""Writes what each recipe learns from: sets, licences, counts, and what was left out since it judges us.

    python -m train.datasheet            # writes train/DATASHEET.md
    python -m train.datasheet --check    # exits 1 where a sample holds 13 words in a row that judge us

Not for: the reader's data, which has a sheet of its own (`models/embedded`), or making samples (the recipes' files).
"""

import argparse
import statistics
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from pipeline.text.tokens import count_tokens
from train.extractor import extractor_samples, preference_pairs
from train.lora import Part, Sample
from train.parser import parser_samples
from train.pruner import path_answers
from train.reader.data import judged_rows, own_rows
from train.reader.overlap import LICENCE, RUN, found_in, judged_questions, judged_texts
from train.summariser import summary_answers, summary_pairs

SHEET: Final = Path(__file__).with_name("DATASHEET.md")
MAKERS: Final[dict[str, Callable[[Part, int], Sequence[Sample]]]] = {
    "parser": parser_samples,
    "extractor": extractor_samples,
    "extractor, pairs": preference_pairs,
    "pruner": path_answers,
    "summariser": summary_answers,
    "summariser, pairs": summary_pairs,
}
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


def overlaps(samples: Sequence[Sample], judged: set[str]) -> list[str]:
    """Return the texts of samples that share a run of words with one of `judged`."""
    texts = {
        part
        for one in samples
        for whole in (one.prompt, one.answer, one.rejected)
        for part in whole.splitlines()
        if len(part.split()) >= RUN and LICENCE not in part
    }
    return found_in(judged, texts)


def judged_runs() -> set[str]:
    """Return the questions and texts of the evaluation that have a run's length."""
    return {text for text in judged_questions() | judged_texts() if len(text.split()) >= RUN}


def sheet() -> str:
    """Return the datasheet, as Markdown; the samples of the recipes' own seed are counted."""
    sentences, questions = judged_rows()
    held = sum(row["split"] == "held" for row in own_rows())
    lines = [
        "# What the recipes learn from",
        "",
        "Written by `python -m train.datasheet`. A sample is made by rule from a question, page or article of the sets",
        "below; no model and no network takes part.",
        "",
        f"Left out because they judge us: {sentences} sentences of public sets, blanked, and {questions} questions",
        f"that they answer or that an evaluation set has; {held} questions on sites held aside.",
        f"`--check` looks for {RUN} equal words in a row between all samples and the evaluation's questions and texts.",
        "",
    ]
    for name, make in MAKERS.items():
        parts = {part: make(part, 0) for part in ("train", "dev")}
        length = statistics.median(count_tokens(one.prompt) for one in parts["train"])
        counted = {part: Counter(one.source.partition("-")[0] for one in made) for part, made in parts.items()}
        none = sum(one.answer == "None" for one in parts["train"]) / len(parts["train"])
        lines += [
            f"## {name}",
            "",
            f"Median prompt {length:.0f} tokens." + f" None answers {none:.0%}." * (none > 0),
            "",
        ]
        lines += ["| set | train | dev | licence |", "|---|---|---|---|"]
        for source, count in counted["train"].most_common():
            lines.append(f"| {source} | {count:,} | {counted['dev'][source]:,} | {LICENCES[source]} |")
        lines.append(f"| all | {len(parts['train']):,} | {len(parts['dev']):,} | |")
        lines.append("")
    return "\n".join(lines)


def main() -> int:
    """Write the sheet, or look for overlaps; return 1 where one is found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    if not parser.parse_args().check:
        SHEET.write_text(sheet(), encoding="utf-8")
        return 0
    judged = judged_runs()
    short = 0
    for name, make in MAKERS.items():
        found = overlaps(make("train", 0), judged)
        print(f"{name}: {len(found)} overlaps", *found[:20], sep="\n  ")
        short += len(found)
    return int(short > 0)


if __name__ == "__main__":
    sys.exit(main())
