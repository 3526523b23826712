"""Deciding by rules whether a request needs the web at all; advice only, a called tool always searches.

The web is not needed where the request carries all it takes: arithmetic and word problems, code to write or mend, text
to rewrite, things to invent. In doubt the answer is yes: a search too many costs a second, one too few costs the
truth. Not for: what to search (`pipeline/search/parse.py`).
"""

import re
from collections.abc import Callable
from typing import Final

_HEAD: Final = 400
"""Characters in which a request says what it wants; behind may stand anything that it brings along."""
_LONGEST: Final = 20_000
"""Characters looked at in all."""
_ARITHMETIC: Final = re.compile(
    r"^(?:what(?:'s| is| are)|calculate|compute|evaluate|how much is|wie viel ist|was ist|berechne|combien font|"
    r"cuánto es|"
    r"quanto fa|сколько будет|計算|计算)?[\s:]*[-+(\d][\d\s.,()*/+^%×÷=x²³√!·-]*(?:of\s+\d[\d.,]*)?\s*"
    r"(?:は|等于几|等于多少|是多少|=)?\s*[?？=.]*$",
    re.IGNORECASE,
)
_CODE: Final = re.compile(
    r"```|^\s*(?:def|class|import|from|function|const|let|var|public|private|package|fn|impl|struct|use|SELECT|"
    r"INSERT)\s+\w.*$"
    r"|^\s*#include\s*[<\"]|^Traceback \(most recent|;\s{0,9}\n\s{0,99}\}|=>\s{0,9}\{|\)\s{0,9}\{\s{0,9}\n",
    re.MULTILINE,
)
_WRITE: Final = (
    r"write|compose|draft|craft|create|invent|design|structure|script|pen|generate|produce|construct|"
    r"schreib(?:e|en)?|verfasse|entwirf|dichte|écris|rédige|compose|escribe|redacta|scrivi|escreva|напиши|сочини|"
    r"придумай"
)
_PIECES: Final = (
    r"poem|haiku|limerick|sonnet|song|lyrics|story|tale|essay|blog\s?post|post|e-?mail|letter|speech|script|"
    r"screenplay|dialogue|"
    r"monologue|soliloquy|review|headline|slogan|tagline|joke|paragraph|announcement|apology|toast|caption|outline|"
    r"lesson plan|"
    r"cover letter|résumé|resume|product description|introduction|conclusion|tweet|character|conversation|"
    r"gedicht|geschichte|brief|rede|aufsatz|poème|histoire|lettre|poema|cuento|carta|poesia|lettera|storia|"
    r"стихотворение|"
    r"рассказ|письмо"
)
_CREATIVE: Final = re.compile(rf"\b(?:{_WRITE})\b[^.?!\n]{{0,120}}\b(?:{_PIECES})s?\b", re.IGNORECASE)
_CREATIVE_CJK: Final = re.compile(
    r"写(?:一|首|篇|封|个)|寫(?:一|首|篇|封|個)|(?:詩|物語|メール|作文|手紙)を(?:書|作)|써\s?줘|작성해"
)
_ROLE: Final = re.compile(
    r"^(?:please\s+)?(?:pretend|imagine (?:you|that you|yourself)|act as|embody|embrace the role|picture yourself|"
    r"assume the role|take on the role|suppose you are|now you are|you are an? |as an? [\w\s-]{3,40}, (?:what|how|"
    r"describe|would|explain)|"
    r"if you were|how would you introduce yourself|please (?:assume|take on)|role-?play|spiele? die rolle|stell dir "
    r"vor|"
    r"imagine que tu|imagina que eres)",
    re.IGNORECASE,
)
_WHAT_IF: Final = re.compile(r"^what if\b|^was wäre,? wenn\b|^et si\b|^¿?qué pasaría si\b", re.IGNORECASE)
_GIVEN_TEXT: Final = re.compile(
    r"(?<!to )\b(?:rewrite|rephrase|paraphrase|proofread|edit|correct|fix (?:the )?(?:grammar|spelling)|shorten|"
    r"translate|summari[sz]e|"
    r"polish|reword|read the|extract|classify|identify|count|evaluate|analy[sz]e|"
    r"umschreiben|übersetze?n?|korrigiere?n?|fasse|traduis|traduire|résume|corrige|traduce|resume|reescribe|traduci|"
    r"riassumi|переведи|исправь|перепиши)\b"
    r"|翻译|翻譯|改写|改寫|润色|总结以下|翻訳し|書き直し|要約し|校正",
    re.IGNORECASE,
)
_GIVEN_MARK: Final = re.compile(
    r"\bread the (?:following|below)\b|\b(?:the )?(?:following|below|given|presented|this (?:text|sentence|paragraph|"
    r"passage)|these (?:sentences|reviews|records))\b|"
    r"\bfolgende[nrsm]?\b|\bdiesen (?:satz|text)\b|\bsuivante?\b|\bsiguiente\b|以下|次の|下面|[:：]\s*[\"“„«\n]|"
    r"^[^\n]{0,160}[:：]\s*\S",
    re.IGNORECASE,
)
_PREVIOUS: Final = re.compile(
    r"\b(?:your|the|my) (?:previous|last|above|earlier) (?:response|answer|message|reply|text)\b", re.IGNORECASE
)
_PROGRAM: Final = re.compile(
    r"\b(?:write|implement|develop|create|build|code|refactor|debug|schreibe?|implementiere|écris|"
    r"escribe)\b[^.?!\n]{0,80}\b"
    r"(?:functions?|program|script|class|method|algorithm|regex|regular expression|queries|query|sql|code|data "
    r"structure|"
    r"binary (?:tree|search)|website in html|unit tests?|funktion|programm|fonction|función|programa)\b",
    re.IGNORECASE,
)
_SOLVE: Final = re.compile(
    r"\bsolve for \w\b|\bfind the value of\b|\bexpress [\w\s+*/-]{1,20} in (?:terms of )?\w\b|\bf\(x\)\s*=|"
    r"\b(?:what is|find|calculate) the (?:area|perimeter|volume|length|remainder|probability|sum|product|median|"
    r"hypotenuse|square root|derivative|integral)\b"
    r"|\b(?:inequality|integers?)\b.*[<>≤≥|]|\b\w\s*[+*]\s*\w\s*=\s*\d*\w",
    re.IGNORECASE,
)
_NUMBER: Final = re.compile(
    r"\d[\d,.]*|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|fifty|hundred|"
    r"dozen|"
    r"half|twice|thrice|double|triple|quarter|third|each|every)\b|%",
    re.IGNORECASE,
)
_ASKS_AMOUNT: Final = re.compile(
    r"\bhow (?:many|much|long|old|far|fast|tall|big|often|late|heavy)\b|\bwhat (?:is|was|are|were|will be|would be|"
    r"percentage|fraction|'s)\b"
    r"|\bcalculate\b|\bfind\b|\bwhat\b",
    re.IGNORECASE,
)
_SENTENCE: Final = re.compile(r"(?<!\bMr)(?<!\bMs)(?<!\bDr)(?<!\bMrs)[.!?]['\")]?(?:\s+(?=[A-Z0-9\"'(])|$)")
_FRESH_WORLD: Final = re.compile(
    r"\b(?:currently|latest|today|tonight|this (?:year|week|month)|news|released?|according to|world record|president|"
    r"election)\b",
    re.IGNORECASE,
)
_PUZZLE: Final = re.compile(
    r"\bwhich word does not belong\b|\bif you have just overtaken\b|\beach of them has\b|\bis the (?:father|mother|"
    r"brother|sister) of [A-Z]\b|"
    r"\brolling (?:a|two|three) dic?e\b|\bendpoints of a\b|\bconsists of three statements\b|\bcoin is (?:flipped|"
    r"tossed)\b",
    re.IGNORECASE,
)


def _arithmetic(text: str) -> bool:
    return len(text) < 200 and bool(_ARITHMETIC.match(text)) and bool(re.search(r"\d\s*\D", text))


def _given_text(text: str) -> bool:
    """A verb of rewriting in the first words, and something to rewrite behind it."""
    if not _GIVEN_TEXT.search(text[:250]):
        return False
    long_enough = len(text) > 120 or "\n" in text
    return bool(_GIVEN_MARK.search(text)) and (long_enough or bool(re.search(r"[:：]\s*\S|[\"“„«「『]", text)))


def _word_problem(text: str) -> bool:
    """A little story with figures that ends in a question for an amount."""
    if _FRESH_WORLD.search(text[-160:]) and not re.search(r"[.!]\s+\S", text[:-1]):
        return False
    sentences = [part for part in _SENTENCE.split(text) if part.strip()]
    numbers = len(_NUMBER.findall(text))
    conditional = bool(re.match(r"(?:if|when|given|assuming)\b", text, re.IGNORECASE)) and numbers >= 2
    if len(sentences) < 2 and not conditional and not (numbers >= 4 and len(text) > 90):
        return False
    return numbers >= 2 and bool(_ASKS_AMOUNT.search(sentences[-1] if sentences else text))


_Test = Callable[[str], object]
_RULES: Final[tuple[tuple[str, _Test], ...]] = (
    ("The request is empty.", lambda text: not text),
    ("It is arithmetic.", _arithmetic),
    ("It brings the code that it asks about.", _CODE.search),
    ("It asks to work on an earlier answer.", lambda text: _PREVIOUS.search(text[:_HEAD])),
    ("It asks for a program, which is written, not found.", lambda text: _PROGRAM.search(text[:_HEAD])),
    ("It brings the text that it asks to work on.", _given_text),
    ("It asks to imagine something.", lambda text: _ROLE.match(text) or _WHAT_IF.match(text)),
    (
        "It asks for a piece of writing.",
        lambda text: _CREATIVE.search(text[:_HEAD]) or _CREATIVE_CJK.search(text[:_HEAD]),
    ),
    ("It is a problem that brings its own facts.", lambda text: _PUZZLE.search(text) or _SOLVE.search(text)),
    ("It is a word problem that brings its own figures.", _word_problem),
)


def needs_search(request: str) -> tuple[bool, str]:
    """Return whether the web is needed to answer `request`, and one sentence why."""
    text = request.strip()[:_LONGEST]
    for reason, test in _RULES:
        if test(text):
            return False, reason
    return True, "It asks about the world, and nothing in it carries the answer."
