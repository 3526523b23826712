"""What every web provider answers on each failure, played by a loopback server.

The server answers as each API is documented. Serper documents no errors: its 403 and its two 400s are as several public
projects recorded them, its 401, 429 and 500 are of the same form by guess. Exa's 403s and 503 are documented by status
and tag, without their words. Not for: the live services, which are never asked."""

import json
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from threading import Event
from typing import Final

import anyio
import httpx2

from bench.loopback import listening
from pipeline.search.chain import Searcher
from pipeline.search.provider import providers
from pipeline.search.providers import searxng, wikipedia
from pipeline.search.query import SearchQuery, SearchStatus
from pipeline.search.service import Service
from pipeline.search.web_api import WebApi

KEY: Final = "sk-never-show-this-0123456789"
SLOW: Final = "slow"
AWAY: Final = "refused"
"""Nothing listens at the address."""
PATIENCE: Final = 0.1
"""Seconds that a provider waits for the slow answer."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What the loopback server answers."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Loopback:
    """The server: what it answers next, and what it was asked."""

    address: str = ""
    reply: Reply = field(default_factory=lambda: Reply(200, b"{}"))
    hold: Event | None = None
    asked: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list)
    """Method, path with query, headers in lower case, body."""


@contextmanager
def loopback() -> Iterator[Loopback]:
    """Run a server that answers whatever it is reported to."""
    state = Loopback()

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            state.asked.append((self.command, self.path, headers, body))
            if state.hold is not None:
                state.hold.wait(20)
            try:
                self.send_response(state.reply.status)
                for name, value in state.reply.headers.items():
                    self.send_header(name, value)
                if "Content-Length" not in state.reply.headers:
                    self.send_header("Content-Length", str(len(state.reply.body)))
                self.end_headers()
                self.wfile.write(state.reply.body)
            except ConnectionError:
                self.close_connection = (
                    True  # the client has given up, which is what a slow answer is for
                )

        do_GET = answer
        do_POST = answer

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with listening(Handler) as port:
        state.address = f"http://127.0.0.1:{port}"
        try:
            yield state
        finally:
            if state.hold is not None:
                state.hold.set()


SERVICES: Final = {
    one.name: one.service for one in providers().values() if one.service is not None and one.key
}
SCHOLARLY: Final = {
    one.name: one.service
    for one in providers().values()
    if one.service is not None and one.kind == "research"
}
Maker = Callable[[httpx2.AsyncClient, str, float], Searcher]


def _maker(service: Service, key: str = KEY) -> Maker:
    return lambda client, url, seconds: WebApi(service, client, key, base_url=url, timeout=seconds)


MAKERS: Final[dict[str, Maker]] = {
    "searxng": _maker(searxng.SEARXNG, ""),
    **{name: _maker(service) for name, service in (SERVICES | SCHOLARLY).items()},
    "tavily-keyless": _maker(SERVICES["tavily"], ""),
    "wikipedia": _maker(wikipedia.WIKIPEDIA, ""),
}


def _json(status: int, body: object, **headers: str) -> Reply:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status, json.dumps(body).encode(), {"Content-Type": "application/json", **named})


def _brave(status: int, code: str, detail: str, **headers: str) -> Reply:
    error = {
        "id": "5d832250",
        "status": status,
        "code": code,
        "detail": detail,
        "meta": {"component": "x"},
    }
    return _json(status, {"type": "ErrorResponse", "error": error, "time": 1663072993}, **headers)


def _tavily(status: int, text: str, **headers: str) -> Reply:
    return _json(status, {"detail": {"error": text}}, **headers)


def _exa(status: int, tag: str, text: str, **headers: str) -> Reply:
    return _json(status, {"requestId": "67207943fab9832d", "error": text, "tag": tag}, **headers)


def _serper(status: int, text: str, **headers: str) -> Reply:
    return _json(status, {"message": text, "statusCode": status}, **headers)


def _wiki(code: str, info: str, status: int = 200, **headers: str) -> Reply:
    return _json(
        status,
        {"error": {"code": code, "info": info}},
        MediaWiki_API_Error=code,
        **headers,
    )


def _engines(*reasons: str) -> Reply:
    silent = [[f"engine{place}", reason] for place, reason in enumerate(reasons)]
    return _json(200, {"query": "x", "results": [], "unresponsive_engines": silent})


def _atom(*entries: str) -> Reply:
    """A feed of arXiv's."""
    head = (
        "<?xml version='1.0' encoding='UTF-8'?><feed xmlns='http://www.w3.org/2005/Atom' "
        "xmlns:arxiv='http://arxiv.org/schemas/atom' "
        "xmlns:opensearch='http://a9.com/-/spec/opensearch/1.1/'>"
        "<id>https://arxiv.org/api/x</id><title>arXiv Query: search_query=x</title>"
    )
    return Reply(
        200,
        f"{head}{''.join(entries)}</feed>".encode(),
        {"Content-Type": "application/atom+xml"},
    )


_WRONG_ID: Final = (
    "<entry><id>https://arxiv.org/api/errors#incorrect_id_format_for_x</id><title>Error</title>"
    "<summary>incorrect id format for x</summary></entry>"
)

# Texts and forms as the services' own OpenAPI files give them.
_TAVILY: Final = {
    "429": _tavily(
        429,
        "Your request has been blocked due to excessive requests. Please reduce rate of requests.",
    ),
    "429 with Retry-After": _tavily(
        429,
        "Your request has been blocked due to excessive requests. Please reduce the rate of "
        "requests.",
        Retry_After="60",
    ),
    "432": _tavily(
        432,
        "This request exceeds your plan's set usage limit. Please upgrade your plan or contact "
        "support@tavily.com",
    ),
    "433": _tavily(
        433,
        "This request exceeds the pay-as-you-go limit. You can increase your limit on the Tavily "
        "dashboard.",
    ),
    "400": _tavily(400, "Invalid topic. Must be 'general' or 'news'."),
    "422": _json(
        422,
        {
            "detail": [
                {
                    "type": "missing",
                    "loc": ["body", "query"],
                    "msg": "Field required",
                    "input": {},
                }
            ]
        },
    ),
    "500": _tavily(500, "Internal Server Error"),
    "empty": _json(200, {"query": "x", "results": [], "response_time": 1.1}),
}
OWN: Final[dict[str, dict[str, Reply]]] = {
    "searxng": {
        "401": Reply(401, b""),
        "403": Reply(
            403,
            b"<!doctype html>\n<html lang=en>\n<title>403 Forbidden</title>\n<h1>Forbidden</h1>\n",
        ),
        "400": _json(400, {"error": "Invalid value hour for parameter time_range"}),
        "429": Reply(429, b"Too Many Requests"),
        "429 with Retry-After": Reply(429, b"", {"Retry-After": "17"}),
        "engines: 429": _engines("too many requests"),
        "engines: suspended": _engines("Suspended: too many requests"),
        "engines: CAPTCHA": _engines("CAPTCHA", "timeout"),
        "engines: 403": _engines("access denied"),
        "engines: slow": _engines("timeout"),
        "engines: HTML": _engines("parsing error"),
        "engines: crash": _engines("unexpected crash"),
        "engines: away": _engines("HTTP connection error"),
        "500": Reply(500, b"<h1>Internal Server Error</h1>"),
        "empty": _json(200, {"query": "x", "results": [], "unresponsive_engines": []}),
    },
    "brave": {
        "401": _brave(401, "UNAUTHORIZED", f"No such key: {KEY}"),
        "403": _brave(403, "OPTION_NOT_IN_PLAN", "The option is not in the plan."),
        "404": _brave(404, "SUBSCRIPTION_NOT_FOUND", "No subscription found."),
        "422 key": _brave(
            422,
            "SUBSCRIPTION_TOKEN_INVALID",
            "The provided subscription token is invalid.",
        ),
        "422": _brave(422, "VALIDATION", "Unable to validate request parameter(s)"),
        "429": _brave(429, "RATE_LIMITED", "Request rate limit exceeded for plan."),
        "429 with Retry-After": _brave(
            429, "RATE_LIMITED", "Request rate limit exceeded.", Retry_After="17"
        ),
        "429 with windows": _brave(
            429,
            "RATE_LIMITED",
            "Rate limit.",
            X_RateLimit_Remaining="0, 14523",
            X_RateLimit_Reset="1, 1419704",
        ),
        "429 quota": _brave(
            429,
            "QUOTA_LIMITED",
            "Quota limit.",
            X_RateLimit_Remaining="1, 0",
            X_RateLimit_Reset="1, 14197",
        ),
        "500": Reply(500, b""),
        "empty": _json(200, {"type": "search", "query": {"original": "x"}}),
    },
    "tavily": {
        "401": _tavily(401, f"Unauthorized: missing or invalid API key {KEY}."),
        **_TAVILY,
    },
    "tavily-keyless": {
        "401": _tavily(401, "Unauthorized: missing or invalid API key."),
        **_TAVILY,
    },
    "exa": {
        "401": _exa(401, "INVALID_API_KEY", f"Invalid API key {KEY}"),
        "402": _exa(
            402,
            "NO_MORE_CREDITS",
            "You have exceeded your credits limit. Please top up to keep using Exa at "
            "dashboard.exa.ai",
        ),
        "402 budget": _exa(
            402,
            "API_KEY_BUDGET_EXCEEDED",
            "The spending budget of this API key has been exceeded.",
        ),
        "403": _exa(403, "FEATURE_DISABLED", "The feature is not available on your plan."),
        "403 words": _exa(
            403, "PROHIBITED_CONTENT", "The request was blocked by content moderation."
        ),
        "400": _exa(
            400,
            "INVALID_REQUEST_BODY",
            "Invalid request body: query: Invalid input: expected string, received undefined",
        ),
        "429": _exa(
            429,
            "RATE_LIMIT_EXCEEDED",
            "You've exceeded the Exa rate limit for your network. If you believe this is in "
            "error, please email "
            "hello@exa.ai :)",
        ),
        "429 without a tag": _json(
            429,
            {"error": "You've exceeded your Exa rate limit of 5 requests per second."},
        ),
        "429 with Retry-After": _exa(
            429, "RATE_LIMIT_EXCEEDED", "Too many requests.", Retry_After="17"
        ),
        "500": _exa(
            500,
            "DEFAULT_ERROR",
            "Sorry, we encountered an error while processing your request. Please try again later",
        ),
        "503": _exa(503, "SERVICE_OVERLOADED", "Try again later."),
        "empty": _json(
            200,
            {"requestId": "b5947044", "resolvedSearchType": "neural", "results": []},
        ),
    },
    "serper": {
        "401": _serper(401, "Unauthorized."),
        "403": _serper(403, "Unauthorized."),
        "403 with the key": _serper(403, f"Unauthorized: {KEY}"),
        "400 credits": _serper(400, "Not enough credits"),
        "400 credits, bare": _json(400, {"message": "Not enough credits"}),
        "400": _serper(400, "Missing query parameter"),
        "429": _serper(429, "Too many requests"),
        "429 with Retry-After": _serper(429, "Too many requests", Retry_After="17"),
        "500": _serper(500, "Internal server error"),
        "empty": _json(200, {"searchParameters": {"q": "x"}, "organic": [], "credits": 1}),
    },
    "wikipedia": {
        "403": Reply(403, b"Please set a user-agent and respect our robot policy."),
        "429": Reply(429, b"You are making too many requests."),
        "429 with Retry-After": Reply(429, b"", {"Retry-After": "17"}),
        "200 ratelimited": _wiki(
            "ratelimited", "You've exceeded your rate limit. Please wait and try again."
        ),
        "200 maxlag": _wiki("maxlag", "Waiting for 10.0.0.1: 7 seconds lagged.", Retry_After="5"),
        "200 too busy": _wiki("cirrussearch-too-busy-error", "Search is currently too busy."),
        "200 bad value": _wiki("badvalue", 'Unrecognized value for parameter "srprop".'),
        "500": Reply(500, b""),
        "503": Reply(503, b"<html>upstream connect error</html>"),
        "empty": _json(
            200,
            {
                "batchcomplete": True,
                "query": {"searchinfo": {"totalhits": 0}, "search": []},
            },
        ),
    },
}
OWN.update(
    {
        "openalex": {
            "400": _json(
                400,
                {
                    "error": "Invalid query parameters error.",
                    "message": "from_date is not a valid field.",
                },
            ),
            "403 busy": _json(
                403,
                {"error": "Forbidden", "message": "Rate limit exceeded; slow down."},
            ),
            "429 budget": _json(
                429,
                {
                    "error": "Rate limit exceeded",
                    "message": "Insufficient budget: your daily usage is used up.",
                },
                Retry_After="35000",
            ),
            "429": _json(
                429,
                {
                    "error": "Rate limit exceeded",
                    "message": f"Too many requests by {KEY}.",
                },
            ),
            "500": _json(500, {"error": "Internal Server Error"}),
            "503": Reply(503, b"<html><h1>503 Service Temporarily Unavailable</h1></html>"),
            "empty": _json(
                200,
                {
                    "meta": {"count": 0, "page": 1, "per_page": 10},
                    "results": [],
                    "group_by": [],
                },
            ),
        },
        "semanticscholar": {
            "400": _json(400, {"error": "Unrecognized or unsupported fields: [abstracts]"}),
            "403 busy": _json(403, {"message": "Forbidden"}),
            "429": _json(
                429,
                {
                    "message": "Too Many Requests. Please wait and try again or apply for a key "
                    "for higher limits.",
                    "code": "429",
                },
            ),
            "429 with Retry-After": _json(429, {"message": "Too Many Requests."}, Retry_After="17"),
            "500": _json(500, {"message": "Internal Server Error"}),
            "504 gateway": _json(504, {"message": "Endpoint request timed out"}),
            "empty": _json(200, {"total": 0, "offset": 0}),
        },
        "crossref": {
            "400": _json(
                400,
                {
                    "status": "failed",
                    "message-type": "validation-failure",
                    "message": [
                        {
                            "type": "parameter-not-allowed",
                            "value": "x",
                            "message": "This route does not have x",
                        }
                    ],
                },
            ),
            "200 failed": _json(
                200,
                {
                    "status": "failed",
                    "message-type": "exception",
                    "message": "Backend is away",
                },
            ),
            "403 busy": Reply(403, b"Forbidden"),
            "404 route": Reply(404, b"Resource not found."),
            "429": Reply(
                429,
                b"Too Many Requests",
                {"X-Rate-Limit-Limit": "5", "X-Rate-Limit-Interval": "1s"},
            ),
            "429 with Retry-After": Reply(429, b"", {"Retry-After": "17"}),
            "500": Reply(500, b"Internal Server Error"),
            "503": Reply(503, b"<html>503 Service Temporarily Unavailable</html>"),
            "empty": _json(
                200,
                {
                    "status": "ok",
                    "message-type": "work-list",
                    "message": {"total-results": 0, "items": []},
                },
            ),
        },
        "arxiv": {
            "200 error": _atom(_WRONG_ID),
            "200 busy": Reply(200, b"Rate exceeded.", {"Content-Type": "text/plain"}),
            "400": Reply(400, _atom(_WRONG_ID).body),
            "403 busy": Reply(403, b"<html>Access Denied</html>"),
            "429": Reply(429, b"Rate exceeded."),
            "503": Reply(503, b"", {"Retry-After": "17"}),
            "cut feed": Reply(
                200,
                _atom("<entry><id>http://arxiv.org/abs/1").body.removesuffix(b"</feed>"),
            ),
            "bomb": Reply(200, b'<!DOCTYPE x [<!ENTITY a "b">]><feed>&a;</feed>'),
            "500": Reply(500, b""),
            "empty": _atom(),
        },
    }
)
SHARED: Final[dict[str, Reply]] = {
    "502": Reply(502, b"<html><h1>502 Bad Gateway</h1></html>"),
    "504": Reply(504, b""),
    "redirect": Reply(302, b"", {"Location": "http://127.0.0.1:9/login"}),
    "HTML": Reply(200, b"<!DOCTYPE html><html><body>Sign in to the network</body></html>"),
    "cut JSON": Reply(200, b'{"results": [{"title": "Lake", "url": "https://e.o'),
    "cut transfer": Reply(200, b'{"results": [', {"Content-Length": "4000"}),
    "other JSON": Reply(200, b'{"hello": "world"}'),
    SLOW: Reply(200, b"{}"),
}


QUERY: Final = SearchQuery("lake orvane")


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    provider: str
    fault: str
    status: SearchStatus
    retry_after: float | None
    reason: str


def free_place() -> str:
    """Return a host and port of this machine at which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


def fault_table() -> list[Row]:
    """Return what every provider makes of every failure."""
    return anyio.run(_fault_table)


async def _fault_table() -> list[Row]:
    """Ask one server through one client: opening them for each row took 24 s of 260."""
    rows = []
    async with httpx2.AsyncClient() as client:
        with loopback() as server:
            for provider, own in OWN.items():
                for fault, reply in {**own, **SHARED}.items():
                    rows.append(await _row(client, server, provider, fault, reply))

                rows.append(await _away(client, provider))
    return rows


async def _row(
    client: httpx2.AsyncClient,
    server: Loopback,
    provider: str,
    fault: str,
    reply: Reply,
) -> Row:
    server.reply = reply
    server.hold = Event() if fault == SLOW else None
    patience = PATIENCE if fault == SLOW else 5.0
    outcome = await MAKERS[provider](client, server.address, patience).search(QUERY, limit=10)
    if server.hold is not None:
        server.hold.set()

    reason = outcome.reason.replace(server.address.removeprefix("http://"), "HOST")
    return Row(provider, fault, outcome.status, outcome.retry_after, reason)


async def _away(client: httpx2.AsyncClient, provider: str) -> Row:
    place = free_place()
    away = await MAKERS[provider](client, f"http://{place}", 5.0).search(QUERY, limit=10)
    return Row(
        provider,
        AWAY,
        away.status,
        away.retry_after,
        away.reason.replace(place, "HOST"),
    )
