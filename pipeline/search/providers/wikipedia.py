"""Wikipedia, in any of its languages, without a key; an error may come with status 200.

The date that it gives is that of the last edit, not of publication, so results carry none.
"""

from collections.abc import Mapping
from html import unescape
from typing import TYPE_CHECKING, Final, cast
from urllib.parse import quote

from pipeline.search.provider import over
from pipeline.search.service import Api, Request, Service, agent, at, error_code

if TYPE_CHECKING:
    from pipeline.search.query import SearchQuery, SearchStatus

_PATH: Final = "/w/api.php"
_STATUS_OF_ERROR: Final[Mapping[str, "SearchStatus"]] = {
    "ratelimited": "rate_limited",
    "maxlag": "rate_limited",
    "cirrussearch-too-busy-error": "rate_limited",
    "readapidenied": "unauthorized",
    "blocked": "blocked",
}


def _wikipedia(api: Api, query: "SearchQuery", words: str, count: int) -> Request | str:
    # Its site names a Wikipedia, and more exactly than the language does.
    site = query.site.lower().removeprefix("www.")
    name = site.removesuffix("wikipedia.org").strip(".")
    if site and (site == name or not site.endswith("wikipedia.org")):
        return f"Wikipedia searches only its own articles, not {query.site}."
    code = name or query.language.lower()
    is_code = code.isascii() and code.replace("-", "").isalpha()
    language = code if is_code else "en"
    parameters = {
        "action": "query",
        "list": "search",
        "srsearch": words,
        "srlimit": str(count),
        "sroffset": str((query.page - 1) * count),
        "srprop": "snippet",
        "format": "json",
        "formatversion": "2",
        "uselang": language,
    }
    base = api.base.replace("{language}", language)
    return Request("GET", base + _PATH, {"User-Agent": agent(api.key)}, parameters)


def _judged(code: int, answer: object) -> "SearchStatus | None":
    if error := error_code(answer):
        return _STATUS_OF_ERROR.get(error, "bad_response")
    return "blocked" if code == 403 else None


def _url(row: Mapping[str, object]) -> str:
    title = unescape(str(row.get("title") or "")).replace(" ", "_")
    base = cast(Request, row["asked"]).url.removesuffix(_PATH)
    return f"{base}/wiki/{quote(title, safe='/:@!$,;()*')}" if title else ""


def _language(row: Mapping[str, object]) -> str:
    return (cast(Request, row["asked"]).params or {})["uselang"]


WIKIPEDIA: Final = Service(
    name="wikipedia",
    title="Wikipedia",
    address="https://{language}.wikipedia.org",
    write=_wikipedia,
    judge=_judged,
    able=frozenset({"language", "paging", "site"}),
    most=500,
    longest=300,  # longer searches are refused
    pages=100,
    rows=lambda answer: at(answer, "query.search"),
    url=_url,
    snippet=("snippet",),
    language=_language,
    keyless=True,
)
PROVIDER: Final = over(WIKIPEDIA, place=60)
