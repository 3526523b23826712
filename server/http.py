"""The HTTP application: the MCP server behind its gate, with Host and Origin checks on for every address.

Not for: opening the port (`server/transports.py`).
"""

from mcp.server.auth.settings import AuthSettings
from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import ASGIApp

from errors import UsageError
from server.app import build_server
from server.http_access import Gate, JwtVerifier
from server.settings import MEGABYTE, Settings


def build_app(settings: Settings, *, host: str, port: int, allowed_hosts: list[str]) -> ASGIApp:
    """Return the ASGI application: `/mcp`, `/health`, and the metadata of RFC 9728 where OAuth is set."""
    auth, verifier = _oauth(settings)
    server = build_server(settings, own_signals=True, auth=auth, token_verifier=verifier)
    # The SDK checks Host and Origin by itself on loopback addresses only.
    names = [f"{host}:{port}", f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}", *allowed_hosts]
    security = TransportSecuritySettings(
        allowed_hosts=names, allowed_origins=[f"{scheme}://{name}" for name in names for scheme in ("http", "https")]
    )
    # Arguments are at most 50 sources and a question; the SDK would take requests of four times as much.
    app = server.streamable_http_app(host=host, transport_security=security, max_request_body_size=MEGABYTE)
    return Gate(app, tokens=settings.http_tokens, per_minute=settings.http_rate)


def _oauth(settings: Settings) -> tuple[AuthSettings | None, JwtVerifier | None]:
    if not settings.http_issuer:
        return None, None
    if not settings.http_resource:
        raise UsageError(
            "WINNOW_HTTP_ISSUER is set, but not the name that its tokens have for this server.",
            hint="Set WINNOW_HTTP_RESOURCE to our own URL, such as https://winnow.example/mcp.",
        )
    if settings.http_tokens:
        raise UsageError("Both fixed tokens and an OAuth issuer are set.", hint="Choose one of them.")
    # Validated from text, which keeps the URLs letter by letter: clients compare issuers so.
    auth = AuthSettings.model_validate(
        {
            "issuer_url": settings.http_issuer,
            "resource_server_url": settings.http_resource,
            "required_scopes": list(settings.http_scopes) or None,
            "validate_token_resource": True,
        }
    )
    return auth, JwtVerifier(settings.http_issuer, settings.http_resource)
