"""Whether a question is about a text as a whole, so that summaries earn room in the answer.

By its words alone: one that asks for the whole, and none that narrows it down. Not for: the answer (`query.py`).
"""

from functools import cache
from typing import Final

from pipeline.text.words import index_terms

_CUES: Final = (
    "summary summarize summarise summarization overview outline gist nutshell main key central overall general "
    "major important point idea theme topic finding conclusion takeaway message whole entire abstract "
    "zusammenfassung zusammenfassen fasse überblick hauptthemen hauptpunkte kernaussagen worum "
    "résumé résume résumer aperçu principaux principales thèmes parle resumen resume resumir principales temas trata"
)
"""Words that ask for the whole."""
_FILLERS: Final = (
    "document text page article paper book story report meeting discussion conversation transcript source content work "
    "give tell please short brief briefly describe explain say said cover discuss talk deal author write written "
    "following option best all everything people fact argument result mention list what which "
    "dokument artikel seite bericht buch geht gib zusammen wichtigsten document texte livre rapport idées "
    "documento artículo texto libro informe ideas quoi"
)
"""Words that narrow nothing down."""
_BROAD_LANGUAGES: Final = ("en", "de", "fr", "es")
_CJK_CUES: Final = (
    "要約",
    "概要",
    "まとめ",
    "要点",
    "主題",
    "摘要",
    "总结",
    "總結",
    "概述",
    "主要内容",
    "主旨",
    "요약",
    "개요",
    "요점",
)
_CJK_LENGTH: Final = 24
"""Characters up to which a Chinese, Japanese or Korean question with such a cue has no room for a subject."""


def is_broad(question: str) -> bool:
    """Whether a question is about a text as a whole: it asks for a summary, and no word of it narrows that down."""
    if any(cue in question for cue in _CJK_CUES):
        return len(question) <= _CJK_LENGTH
    if not index_terms(question) and question.lower().rstrip(" ?.!").endswith("about"):
        return True
    for language in _BROAD_LANGUAGES:
        terms = set(index_terms(question, language=language))
        cues, fillers = _broad_terms(language)
        if terms & cues and terms <= cues | fillers:
            return True
    return False


@cache
def _broad_terms(language: str) -> tuple[frozenset[str], frozenset[str]]:
    return frozenset(index_terms(_CUES, language=language)), frozenset(index_terms(_FILLERS, language=language))
