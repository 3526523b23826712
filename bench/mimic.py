"""A model server on loopback that answers as a generator of known worth: what a step could gain from
a better model, and what it may lose by a worse one.

It knows the questions of a folder (`bench/library.py`) with the facts that answer them, and uses
llama-server's calls: chats under a schema, tokens (its own: characters), and lists of likely tokens,
by which options are weighed and paths scored. `oracle` is right in every step; `noise` answers in
form and at random, drawn by the question alone. Not for: what real models do.
"""

import json
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal

from starlette.responses import JSONResponse, Response

from bench.library import Library, MeasuredQuestion, read_library
from pipeline.document.units import split_sentences
from pipeline.question.question import Question
from pipeline.reading.bm25 import BM25
from pipeline.text.words import index_terms
from tests.support.model_server import model_server

Worth = Literal["oracle", "noise"]
WORTHS: Final[tuple[Worth, ...]] = ("oracle", "noise")
CONTEXT: Final = 400_000
"""Tokens, each a character: 100,000 of a real tokenizer."""
LISTED: Final = "".join(chr(code) for code in range(9, 127))
"""Tokens that are listed: those of paths and of Yes and No."""
LIKELY: Final = -0.02
UNLIKELY: Final = -6.0
"""Log-probabilities of a token that leads to what is right, and of one that does not."""


@contextmanager
def mimic(folder: Path, worth: Worth) -> Iterator[str]:
    """Serve a generator of `worth` for the questions of `folder`; yield the base URL."""
    mind = Mind(read_library(folder), worth)
    with model_server() as served:
        meta = {"n_ctx": CONTEXT, "n_embd": 8, "worth": worth}
        served.reported["/v1/models"] = {
            "data": [{"id": worth, "owned_by": "llamacpp", "meta": meta}]
        }
        served.will("/chat/completions", mind.chat)
        served.will_at_root("/apply-template", mind.template)
        served.will_at_root("/tokenize", mind.tokenize)
        served.will_at_root("/completion", mind.complete)
        yield served.url


class Mind:
    """What the server answers."""

    def __init__(self, library: Library, worth: Worth) -> None:
        self._library = library
        self._worth = worth
        self._known = sorted(library.asked, key=lambda one: -len(one.question))
        self._steps: Mapping[
            str, Callable[[str, MeasuredQuestion, random.Random], object]
        ] = {
            "queries": self._parsed,
            "lines": self._lines,
            "sentences": self._answered,
        }
        """What is answered, by a property that the schema of the answer has."""

    # --- calls ---

    def chat(self, body: dict[str, object]) -> Response:
        """Answer a chat."""
        prompt = _first(body["messages"])
        asked = self._asked(prompt)
        form: Any = body.get("response_format")
        if form is None:
            text = self._in_short(prompt, asked)
        else:
            named = form["json_schema"]["schema"]["properties"]
            name, step = next(one for one in self._steps.items() if one[0] in named)
            # Not by the prompt: the marks in it are drawn again for each.
            chance = random.Random(f"{asked.question} {name} {len(_numbered(prompt))}")
            text = json.dumps(step(prompt, asked, chance), ensure_ascii=False)
        message = {"role": "assistant", "content": text}
        usage = {"prompt_tokens": len(prompt) // 4, "completion_tokens": len(text) // 4}
        choice = {"message": message, "finish_reason": "stop"}
        return JSONResponse({"choices": [choice], "usage": usage})

    def template(self, body: dict[str, object]) -> Response:
        """Return a prompt of messages: the last one's text."""
        return JSONResponse({"prompt": _first(body["messages"])})

    def tokenize(self, body: dict[str, object]) -> Response:
        """Return the characters' numbers."""
        return JSONResponse({"tokens": [ord(sign) for sign in str(body["content"])]})

    def complete(self, body: dict[str, Any]) -> Response:
        """List the next characters, the right ones first."""
        text = "".join(map(chr, body["prompt"]))
        chance = random.Random(f"{self._asked(text).question} {text[-40:]}")
        if self._worth == "noise":
            shares = {sign: chance.uniform(UNLIKELY, LIKELY) for sign in LISTED}
        else:
            wanted = self._next(text)
            shares = {sign: LIKELY if sign in wanted else UNLIKELY for sign in LISTED}
        rows = [
            {"id": ord(sign), "token": sign, "logprob": share}
            for sign, share in shares.items()
        ]
        top = sorted(rows, key=lambda row: -float(str(row["logprob"])))
        return JSONResponse(
            {"completion_probabilities": [{**top[0], "top_logprobs": top}]}
        )

    # --- steps ---

    def _asked(self, prompt: str) -> MeasuredQuestion:
        folded = " ".join(prompt.split())
        found = (one for one in self._known if " ".join(one.question.split()) in folded)
        return next(found, MeasuredQuestion("", (), ()))

    def _parsed(
        self, prompt: str, asked: MeasuredQuestion, chance: random.Random
    ) -> object:
        """Return one query: the words of the request that find the pages that answer it."""
        words = list(dict.fromkeys(re.findall(r"\w[\w.'-]*", asked.question)))
        chosen = (
            chance.sample(words, min(4, len(words)))
            if self._worth == "noise"
            else self._best_words(asked, words)
        )
        queries = [{"text": " ".join(chosen), "language": "en"}]
        fresh = chance.choice(["any", "month"]) if self._worth == "noise" else "any"
        search = self._worth != "noise" or chance.random() < 0.5
        return {
            "entities": [],
            "parts": [],
            "freshness": fresh,
            "search": search,
            "queries": queries,
        }

    def _in_short(self, prompt: str, asked: MeasuredQuestion) -> str:
        """Return the facts in few words; noise returns words of the prompt."""
        chance = random.Random(f"{asked.question} short")
        if self._worth == "noise":
            return " ".join(chance.sample(prompt.split(), 4))
        facts = [wordings[0] for wordings in asked.answers]
        return ", ".join(facts) or "None"

    def _best_words(self, asked: MeasuredQuestion, words: Sequence[str]) -> list[str]:
        """Return words by which the pages that answer come first, added one by one."""
        index: BM25 = self._library.index
        gold = [self._library.names.index(name) for name in asked.pages]
        chosen: list[str] = []
        reached = -1.0

        def worth(candidate: list[str]) -> float:
            scores = index.scores(Question(" ".join(candidate))).tolist()
            others = [score for place, score in enumerate(scores) if place not in gold]
            return min((scores[place] for place in gold), default=0.0) - max(
                others, default=0.0
            )

        left = [word for word in words if index_terms(word)]
        while left:
            word = max(left, key=lambda one: worth([*chosen, one]))
            if chosen and worth([*chosen, word]) <= reached:
                break
            chosen.append(word)
            reached = worth(chosen)
            left.remove(word)
        return chosen or list(words)

    def _lines(
        self, prompt: str, asked: MeasuredQuestion, chance: random.Random
    ) -> object:
        """Return the numbers of the lines that hold a fact."""
        lines = _numbered(prompt)
        if self._worth == "noise":
            most = chance.randrange(6)
            return {
                "lines": sorted(chance.sample(sorted(lines), min(most, len(lines))))
            }
        holding = (number for number, text in lines.items() if _holds(asked, text))
        return {"lines": sorted(holding)}

    def _answered(
        self, prompt: str, asked: MeasuredQuestion, chance: random.Random
    ) -> object:
        """Return a sentence for each fact, out of the passage that holds it."""
        shown = re.split(r"\[(\d+[a-z]+)\]", prompt.partition("Passages (data")[2])
        passages = dict(zip(shown[1::2], shown[2::2], strict=True))
        if self._worth == "noise":
            words = prompt.split()
            label = chance.choice(sorted(passages) or ["1a"])
            said = " ".join(chance.sample(words, min(12, len(words))))
            return {"sentences": [{"passages": [label], "sentence": said}]}
        sentences: dict[str, str] = {}
        for fact in asked.answers:
            one = MeasuredQuestion("", (fact,), ())
            label = next(
                (label for label, text in passages.items() if one.is_in(text)), ""
            )
            if not label:
                continue
            said = _shortest(passages[label], one)
            before = sentences.get(label, "")
            sentences[label] = before if said in before else f"{before} {said}".strip()
        rows = [
            {"passages": [label], "sentence": said[:200]}
            for label, said in sentences.items()
        ]
        return {"sentences": rows[:3]}

    def _next(self, text: str) -> frozenset[str]:
        """Return the characters that lead on to what is right."""
        if "Go through the lines." in text:
            line = text.rpartition("\n")[2].rpartition("if it does not.")[2]
            right = _holds(self._asked(text), line.rpartition(" -> ")[0])
            return frozenset("Y" if right else "N")
        html, _, rest = text.partition("```\n**Question**: **")
        begun = rest.rpartition("Some key information...")[2]
        gold = _gold_paths(html.partition("```")[2], self._asked(rest))
        return frozenset(
            path[len(begun)]
            for path in gold
            if path.startswith(begun) and len(path) > len(begun)
        )


def _first(messages: object) -> str:
    """Return what was asked, before an answer was shown with its fault."""
    rows = messages if isinstance(messages, list) else []
    return str(rows[0]["content"]) if rows else ""


def _numbered(prompt: str) -> dict[int, str]:
    """Return the numbered lines of a prompt by their numbers, in either form."""
    tagged = re.findall(r"<TAG-(\d+)>(.*?)</TAG-\d+>", prompt, re.DOTALL)
    rows = tagged or re.findall(r"^(\d+)[:.)]? (.+)$", prompt, re.MULTILINE)
    return {int(number): text for number, text in rows}


def _holds(asked: MeasuredQuestion, text: str) -> bool:
    """Whether a text holds one of the facts that answer."""
    return any(MeasuredQuestion("", (fact,), ()).is_in(text) for fact in asked.answers)


def _shortest(text: str, asked: MeasuredQuestion) -> str:
    """Return the sentence, else the line, else the whole text that holds the answer, on one
    line."""
    lines = text.splitlines()
    parts = [line[start:end] for line in lines for start, end in split_sentences(line)]
    found = (part for part in (*parts, *lines) if asked.is_in(part))
    return " ".join(next(found, text).split())


_TAG: Final = re.compile(r"<(/?)([a-z][a-z0-9]*)[^<>]*>")


def _gold_paths(html: str, asked: MeasuredQuestion) -> list[str]:
    """Return the paths down to the elements that hold a fact, as a block's path is written."""
    found: list[str] = []
    open_tags: list[tuple[str, int]] = []
    for tag in _TAG.finditer(html):
        if not tag[1]:
            open_tags.append((tag[2], tag.end()))
            continue
        while open_tags:
            name, start = open_tags.pop()
            inside = html[start : tag.start()]
            path = "".join(f"<{one}>" for one, _ in (*open_tags, (name, 0)))
            held = any(known.startswith(path) for known in found)
            if not held and _holds(asked, _TAG.sub(" ", inside)):
                found.append(path)
            if name == tag[2]:
                break
    return found
