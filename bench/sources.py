"""Where answers come from on the first day: search without a key, code forges, tables,
formats, whole sites.

The web is simulated on loopback: a proxy terminates TLS for every host with a
certificate made for it, as an office's proxy does. The program under test thus runs
without any setting of Winnow's. Not for: the live services, which are never asked, nor
the quality of results."""

import argparse
import json
import os
import re
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import anyio

from bench.formats import checked as formats_checked
from bench.loopback import listening
from bench.providers import OWN, SCHOLARLY, SHARED, Reply, fault_table, misjudged
from errors import SourceError
from extras.forge import forge_at
from pipeline.fetch.client import open_fetcher
from pipeline.fetch.limits import FetchLimits
from readers.html.document import read_document
from tests.support.certificate import make_certificate
from tests.support.forges import ADDRESSES, FAILURES, SITES
from tests.support.web_site import open_site

ROOT: Final = Path(__file__).resolve().parents[1]
QUESTION: Final = "How deep is Lake Orvane?"
HOSTS: Final = (
    "api.tavily.com",
    "en.wikipedia.org",
    *(urlsplit(one.address).netloc for one in SCHOLARLY.values()),
)
LEAST_FAULTS: Final = 10
WIKIPEDIA: Final = {
    "query": {
        "search": [
            {
                "title": "Lake Orvane",
                "snippet": "Lake Orvane is 213 metres deep, the deepest of all.",
            }
        ]
    }
}
TAVILY: Final = {
    "results": [
        {
            "title": "Lake Orvane",
            "url": "http://127.0.0.1:9/orvane",
            "content": "Lake Orvane is 213 metres deep.",
        }
    ]
}
ABSENT: Final = "raise ImportError('a base install has no ddgs')\n"


@dataclass(slots=True)
class Web:
    """What each host answers, and who was asked."""

    answers: dict[str, Reply]
    asked: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)


def json_reply(value: object) -> Reply:
    """Return an answer of an API."""
    return Reply(200, json.dumps(value).encode(), {"Content-Type": "application/json"})


class Behind(BaseHTTPRequestHandler):
    """The proxy and, after it, every host."""

    host = ""
    contexts: dict[str, ssl.SSLContext]
    state: Web

    def do_CONNECT(self) -> None:
        """Become the host that is asked for."""
        self.host = self.path.rpartition(":")[0]
        if self.host not in self.contexts:
            self.send_error(502)
            return
        self.send_response(200)
        self.end_headers()
        self.connection = self.contexts[self.host].wrap_socket(
            self.connection, server_side=True
        )
        self.rfile = self.connection.makefile("rb")
        self.wfile = self.connection.makefile("wb", 0)
        self.close_connection = False

    def finish(self) -> None:
        """Let the TLS connection go as well."""
        super().finish()
        self.connection.close()

    def answer(self) -> None:
        """Say what this host says."""
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.state.asked.append(self.host)
        reply = self.state.answers.get(self.host, Reply(503, b""))
        self.send_response(reply.status)
        for header, value in reply.headers.items():
            self.send_header(header, value)
        self.send_header("Content-Length", str(len(reply.body)))
        self.end_headers()
        self.wfile.write(reply.body)

    do_GET = answer
    do_POST = answer

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def _certified(folder: Path) -> dict[str, ssl.SSLContext]:
    """Return what each host uses TLS with; `trusted.pem` in `folder` then has all their
    certificates."""
    contexts = {}
    for host in HOSTS:
        (folder / host).mkdir()
        contexts[host] = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        contexts[host].load_cert_chain(make_certificate(folder / host, host))
    certificates = [(folder / host / "certificate.pem").read_bytes() for host in HOSTS]
    (folder / "trusted.pem").write_bytes(b"".join(certificates))
    return contexts


@contextmanager
def web(answers: dict[str, Reply]) -> Iterator[Web]:
    """Play the web: each of `HOSTS` with its answer, 503 where it has none, and no
    other host at all."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        state = Web(answers)
        handler = type(
            "Handler", (Behind,), {"contexts": _certified(folder), "state": state}
        )
        (folder / "ddgs").mkdir()
        (folder / "ddgs" / "__init__.py").write_text(ABSENT, encoding="utf-8")
        with listening(handler) as port:
            state.environment = {
                **{
                    name: value
                    for name, value in os.environ.items()
                    if not name.startswith("WINNOW_")
                },
                "HTTPS_PROXY": f"http://127.0.0.1:{port}",
                "SSL_CERT_FILE": str(folder / "trusted.pem"),
                "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}",
                "HOME": str(folder),
                "XDG_CACHE_HOME": str(folder / "cache"),
            }
            yield state


def winnow(state: Web, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command as a newcomer does."""
    command = [sys.executable, "-m", "server", *arguments]
    return subprocess.run(  # noqa: S603  our own command
        command,
        cwd=ROOT,
        env=state.environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def fresh() -> list[str]:
    """Return what a fresh machine does wrong."""
    bad = []
    busy = Reply(429, json.dumps({"detail": {"error": "Too many requests."}}).encode())
    cases = (
        (
            "a keyless API answers",
            {"api.tavily.com": json_reply(TAVILY)},
            ["api.tavily.com"],
        ),
        (
            "a blocked one falls to the next",
            {"api.tavily.com": busy, "en.wikipedia.org": json_reply(WIKIPEDIA)},
            ["api.tavily.com", "en.wikipedia.org"],
        ),
    )
    for name, answers, asked in cases:
        with web(answers) as state:
            run = winnow(state, "research", QUESTION)
            wrong = (
                run.returncode
                or "213 metres" not in run.stdout
                or "keyless ones were used" not in run.stdout
            )
            if wrong or list(dict.fromkeys(state.asked)) != asked:
                bad.append(
                    f"fresh machine, {name}: asked {state.asked}; "
                    f"{run.stdout[-400:]}{run.stderr[-400:]}"
                )
    with web({}) as state:
        run = winnow(state, "research", QUESTION)
        reported = run.stdout + run.stderr
        if not run.returncode or not all(
            f"{who}: bad_response" in reported
            for who in ("tavily-keyless", "wikipedia")
        ):
            bad.append(f"fresh machine, no provider answers: {reported[-600:]}")
    return bad


def providers() -> tuple[int, list[str]]:
    """Return how many failures and first questions were tried, and what fell short."""
    rows = fault_table()
    bad = misjudged(rows)
    bad += [
        f"{name}: too few failures"
        for name in OWN
        if len({*OWN[name], *SHARED}) < LEAST_FAULTS
    ]
    return len(rows) + 3, bad + fresh()


async def _forge(kind: str, path: str, shown: Sequence[str]) -> str:
    async with open_site(SITES[kind]) as site:
        forge = forge_at(kind, site.url("").rstrip("/"))
        limits = replace(FetchLimits(allow_loopback=True), sites=(forge.plan,))
        async with open_fetcher(limits, pages=None) as fetcher:
            try:
                page = await fetcher.fetch(site.url(path))
            except SourceError as error:
                return f"{kind} {path}: {error}"
    text = read_document(page).text
    missing = [words for words in shown if words not in text]
    return f"{kind} {path}: without {missing}" if missing else ""


async def _failing(fault: str) -> str:
    """Return what is wrong where both the API and the page itself fail with `fault`."""
    thread = "/lakes/orvane/issues/3"
    async with open_site(
        {f"/api/v3/repos{thread}": FAILURES[fault], thread: FAILURES["500"]}
    ) as site:
        forge = forge_at("github", site.url("").rstrip("/"))
        limits = FetchLimits(
            allow_loopback=True, total_seconds=4.0, retry=False, sites=(forge.plan,)
        )
        async with open_fetcher(limits, pages=None) as fetcher:
            try:
                await fetcher.fetch(site.url(thread))
            except SourceError:
                return ""
    return f"github {fault}: no typed failure"


def forges() -> tuple[int, list[str]]:
    """Return how many addresses and failures of forges were tried, and what fell
    short."""
    reported = [anyio.run(_forge, *address) for address in ADDRESSES] + [
        anyio.run(_failing, fault) for fault in FAILURES
    ]
    return len(reported), [line for line in reported if line]


PARTS: Final[dict[str, Callable[[], tuple[int, list[str]]]]] = {
    "providers": providers,
    "forges": forges,
    "formats": formats_checked,
}


def main() -> int:
    """Try each part and say how it went; with --check only what fell short counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="exit 1 naming each line that falls short"
    )
    parser.add_argument(
        "--parts", default=",".join(PARTS), help=f"some of {', '.join(PARTS)}"
    )
    given = parser.parse_args()
    short = 0
    for name in filter(None, re.split(r"\W+", given.parts)):
        tried, bad = PARTS[name]()
        short += len(bad)
        sys.stdout.write(
            "".join(f"short: {line}\n" for line in bad)
            + f"{name}: {tried} tried, {len(bad)} short\n"
        )
    return 1 if short and given.check else 0


if __name__ == "__main__":
    sys.exit(main())
