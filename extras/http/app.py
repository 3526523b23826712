"""The HTTP application: the MCP endpoint in its gate, OAuth, CORS, metrics.

Host and Origin are checked for every address by the SDK's transport. Not for: opening
the port (`serve.py`)."""

from collections.abc import Sequence

import anyio
from mcp.server.auth.settings import AuthSettings
from mcp.server.transport_security import TransportSecuritySettings
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp

from errors import UsageError
from extra import importing
from extras.http.gate import MOST_SESSIONS, SESSION_IDLE, Gate
from extras.http.oauth import JwtVerifier
from server.app import Winnow, build_server
from server.calls import Observer
from server.process import PAUSE
from server.settings import MEGABYTE, Settings
from server.toolbox import GRACE


def _as_sent(host: str) -> list[str]:
    """Return a host as clients send it: also without the usual port of https or http,
    which they leave out."""
    name, _, port = host.rpartition(":")
    return [host, name] if name and port in {"443", "80"} else [host]


def build_app(
    settings: Settings,
    *,
    host: str,
    port: int,
    allowed_hosts: list[str],
    allowed_origins: Sequence[str] = (),
) -> ASGIApp:
    """Return the ASGI application: `/mcp`, `/healthz`, `/readyz`, and the metadata of
    RFC 9728 where OAuth is set.

    `allowed_origins`: sites such as `https://chat.example` whose pages may call from a
    browser (CORS). Raises `UsageError` for OAuth settings that do not fit together, and
    where the metrics' address cannot be used; `MissingExtra` or `BrokenExtra` without
    the package of a feature that is set.
    """
    auth, verifier = _oauth(settings)

    async def drain() -> None:
        with anyio.move_on_after(settings.seconds + 2 * GRACE):
            await gate.drain()
        await anyio.sleep(PAUSE)  # lets uvloop write the last response

    server = build_server(
        settings, own_signals=True, drain=drain, auth=auth, token_verifier=verifier
    )
    if settings.http.metrics:
        server.observers.append(_metrics(server, settings.http.metrics))
    # The SDK checks Host and Origin by itself on loopback addresses only.
    names = [
        f"{host}:{port}",
        f"127.0.0.1:{port}",
        f"localhost:{port}",
        f"[::1]:{port}",
        *(name for allowed in allowed_hosts for name in _as_sent(allowed)),
    ]
    security = TransportSecuritySettings(
        allowed_hosts=names,
        allowed_origins=[
            *allowed_origins,
            *(f"{scheme}://{name}" for name in names for scheme in ("http", "https")),
        ],
    )
    # Arguments are at most 50 sources and a question; the SDK's own limit is four times
    # larger.
    app = server.streamable_http_app(
        host=host,
        transport_security=security,
        max_request_body_size=MEGABYTE,
        stateless_http=settings.http.stateless,
        session_idle_timeout=SESSION_IDLE,
        max_sessions=MOST_SESSIONS,
    )
    gate = Gate(
        app,
        tokens=settings.http_tokens,
        per_minute=settings.http.rate,
        close=server.admission.close,
        is_open=server.is_open,
        accepted=verifier.has_accepted if verifier else lambda _: False,
    )
    if not allowed_origins:
        return gate
    # Outside the gate: CORS preflights have no token, and browsers read refusals only
    # with CORS headers.
    return CORSMiddleware(
        gate,
        allow_origins=allowed_origins,
        allow_methods=["GET", "POST", "DELETE"],
        allow_headers=["*"],
        expose_headers=["Mcp-Session-Id", "Retry-After", "WWW-Authenticate"],
    )


def _metrics(server: Winnow, address: str) -> Observer:
    """Serve metrics of `server` at an address; return the observer that counts its
    calls.

    Raises `MissingExtra`, `BrokenExtra`, or `UsageError` for the address.
    """
    with importing("metrics", "WINNOW_HTTP=metrics=…"):
        from extras.http.metrics import Metrics  # noqa: PLC0415  an extra
    metrics = Metrics(server.admission, server.stores)
    metrics.serve(address)
    return metrics


def _oauth(settings: Settings) -> tuple[AuthSettings | None, JwtVerifier | None]:
    if not settings.http.issuer:
        return None, None
    if not settings.http.resource:
        raise UsageError(
            "WINNOW_HTTP has an issuer, but no resource (this server's URL in its tokens).",
            hint="Add this server's URL, such as resource=https://winnow.example/mcp.",
        )
    if settings.http_tokens:
        raise UsageError(
            (
                "Both WINNOW_HTTP_TOKENS (fixed tokens) and an issuer in WINNOW_HTTP "
                "(OAuth) are set."
            ),
            hint="Choose one of them.",
        )
    # Validated from JSON text, which keeps URLs unchanged: clients compare issuers as
    # strings.
    auth = AuthSettings.model_validate(
        {
            "issuer_url": settings.http.issuer,
            "resource_server_url": settings.http.resource,
            "required_scopes": list(settings.http.scopes) or None,
            "validate_token_resource": True,
        }
    )
    return auth, JwtVerifier(settings.http.issuer, settings.http.resource)
