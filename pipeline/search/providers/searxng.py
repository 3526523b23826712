"""A SearXNG instance that a person names, through its JSON API.

It answers 200 with no results when all of its engines were blocked; the reason is in
`unresponsive_engines`, so an empty list is only "nothing found" when that list is empty
too (recorded from a real instance). The address may be loopback, and hold a login.
"""

from base64 import b64encode
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from pipeline.search.provider import Provider
from pipeline.search.service import NO_FAULT, Api, Fault, Request, Service, given
from seams import later

if TYPE_CHECKING:
    from pipeline.search.query import SearchQuery, SearchStatus

_STATUS_OF_WORDS: Final[Mapping[str, "SearchStatus"]] = {
    "captcha": "blocked",
    "access denied": "blocked",
    "cloudflare": "blocked",
    "too many requests": "rate_limited",
    "timeout": "timeout",
    "connection error": "unreachable",
    "network error": "unreachable",
    "proxy error": "unreachable",
}
"""What engines' reasons say, as a status; the first that any of them says counts, since
it says most about what to do."""


def _searxng(api: Api, query: "SearchQuery", words: str, count: int) -> Request:
    # Its limiter takes a program that accepts no HTML for a bot.
    headers = {"Accept": "*/*"}
    if api.key:
        login = b64encode(api.key.encode()).decode("ascii")
        headers["Authorization"] = f"Basic {login}"
    region = f"-{query.region.upper()}" if query.region else ""
    is_dated = query.since or query.until or query.freshness == "any"
    fields = given(
        # `!!g` would send the caller elsewhere, `:de` set the language, `<3` the time limit.
        q=" ".join(word.lstrip("!:<") for word in words.split()),
        format="json",
        # Without it reasons come in the instance's own language.
        locale="en",
        language=f"{query.language}{region}" if query.language else "",
        time_range="" if is_dated else query.freshness,
        safesearch={"off": "0", "moderate": "1", "strict": "2"}.get(query.safe),
        pageno=str(query.page) if query.page > 1 else "",
    )
    url = api.base.removesuffix("/search") + "/search"
    return Request("GET", url, headers, {name: str(fields[name]) for name in fields})


def _fault(answer: Mapping[str, object]) -> Fault:
    """Return which engines failed, each with its reason."""
    engines = answer.get("unresponsive_engines")
    pairs = [
        pair
        for pair in (engines if isinstance(engines, list) else [])
        if isinstance(pair, list) and len(pair) >= 2
    ]
    reasons = "; ".join(f"{str(pair[0])[:40]}: {str(pair[1])[:120]}" for pair in pairs)
    if not reasons:
        return NO_FAULT
    statuses = (
        status for words, status in _STATUS_OF_WORDS.items() if words in reasons.lower()
    )
    status: SearchStatus = next(statuses, "bad_response")
    # An instance, as it comes, rests an engine that said 429 or 403 for so long.
    pause = 180.0 if status in ("rate_limited", "blocked") else None
    return f"Some engines failed ({reasons}).", status, pause


SEARXNG: Final = Service(
    name="searxng",
    title="SearXNG",
    address="",
    write=_searxng,
    judge=lambda code, answer: "blocked" if code == 403 else None,
    able=frozenset({"freshness", "language", "region", "safe search", "paging"}),
    most=1_000,
    longest=400,
    pages=1_000,
    snippet=("content",),
    published="publishedDate",
    engines="engines",
    meaning={
        "unauthorized": "the name and password in WINNOW_SEARXNG were not accepted",
        "rate_limited": "the instance limits our requests; where its limiter is on, every program is "
        "refused until `pass_ip` in its limiter.toml names us",
        "blocked": "the instance refuses; most likely its JSON API is switched off: add `json` under "
        "`search: formats:` in its settings.yml and restart it",
    },
    fault=_fault,
)
PROVIDER: Final = Provider(
    name="searxng",
    make=partial(later("pipeline.search.web_api", "made"), SEARXNG),
    at="searxng",
    place=10,
    service=SEARXNG,
)
