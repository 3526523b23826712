"""OAuth access tokens (RFC 9068, RFC 8707): signature, issuer, audience and expiry of a
JWT are checked against the issuer's public keys. Winnow issues none.

Not for: fixed tokens (`gate.py`).
"""

import logging
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final

import httpx2
import jwt
from anyio import to_thread
from mcp.server.auth.provider import AccessToken

from errors import UsageError
from extras.http.gate import MOST_SESSIONS, digest_of
from server.clients import service_client

ALGORITHMS: Final = (
    "RS256",
    "RS384",
    "RS512",
    "PS256",
    "PS384",
    "PS512",
    "ES256",
    "ES384",
    "ES512",
    "EdDSA",
)
"""Signatures with a public key only: a shared secret cannot be published, and `none` is
no signature."""
LEAST_RSA: Final = 2_048
"""Minimum bits of an RSA key (NIST SP 800-131A)."""
_METADATA_PATHS: Final = (
    "/.well-known/oauth-authorization-server",
    "/.well-known/openid-configuration",
)
_log: Final = logging.getLogger("winnow.http")


class JwtVerifier:
    """Verifies access tokens (JWT) of one issuer for one resource.

    PyJWT reloads the issuer's keys every five minutes, so that withdrawn keys expire,
    and for an unknown key at most twice a minute, so that forged tokens cause no
    traffic.
    """

    def __init__(self, issuer: str, resource: str) -> None:
        """Set the issuer's URL, which tokens (`iss`) may write with a slash at its end
        or without, and our own (`aud`)."""
        self._issuer = issuer.rstrip("/")
        self._resource = resource
        self._keys: jwt.PyJWKClient | None = None
        self._valid: OrderedDict[bytes, None] = OrderedDict()

    def has_accepted(self, token: bytes) -> bool:
        """Return whether a token (by hash) was valid lately; then it is a caller of its
        own."""
        return token in self._valid

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return the access token's claims; None if it is not valid here and now.

        None also if the issuer's keys cannot be read, which is logged.
        """
        try:
            self._keys = self._keys or jwt.PyJWKClient(
                await _address_of_keys(self._issuer)
            )
            key = await to_thread.run_sync(self._keys.get_signing_key_from_jwt, token)
            _check_size(key)
            claims = jwt.decode(
                token,
                key,
                algorithms=list(ALGORITHMS),
                audience=self._resource,
                issuer=(self._issuer, f"{self._issuer}/"),
                options={"require": ["exp", "iss", "aud"]},
            )
        except (
            jwt.PyJWKClientConnectionError,
            httpx2.HTTPError,
            ValueError,
            UsageError,
        ) as error:
            _log.warning("the keys of %s cannot be read: %s", self._issuer, error)
            return None
        except jwt.PyJWTError as error:
            _log.info("token refused: %s", type(error).__name__)
            return None
        self._valid[digest_of(token.encode())] = None
        if len(self._valid) > MOST_SESSIONS:
            self._valid.popitem(last=False)
        return AccessToken(
            token=token,
            client_id=str(
                claims.get("client_id")
                or claims.get("azp")
                or claims.get("sub")
                or "unknown"
            ),
            scopes=_scopes(claims),
            expires_at=int(claims["exp"]),
            resource=self._resource,
            subject=str(claims["sub"]) if "sub" in claims else None,
        )


def _scopes(claims: Mapping[str, Any]) -> list[str]:
    """Return what a token allows: RFC 9068 says `scope`, Entra and Okta write `scp`, a
    text or a list."""
    published = claims.get("scope") or claims.get("scp") or ""
    return (
        published.split() if isinstance(published, str) else list(map(str, published))
    )


def _check_size(key: jwt.PyJWK) -> None:
    """Raise `InvalidKeyError` for an RSA key that is too short."""
    size = getattr(key.key, "key_size", 0)
    if key.key_type == "RSA" and size < LEAST_RSA:
        raise jwt.InvalidKeyError(f"its RSA key of {size} bits is too short")


async def _address_of_keys(issuer: str) -> str:
    async with service_client() as http:
        for path in _METADATA_PATHS:
            answer = await http.get(issuer + path)
            if answer.status_code != httpx2.codes.OK:
                continue
            published = answer.json()
            named_issuer, keys = (
                (published.get("issuer"), published.get("jwks_uri"))
                if isinstance(published, dict)
                else (None, None)
            )
            if (
                not isinstance(named_issuer, str)
                or not isinstance(keys, str)
                or named_issuer.rstrip("/") != issuer
            ):
                raise UsageError(
                    f"The OAuth metadata of {issuer} is of another issuer, or has "
                    "no jwks_uri."
                )
            return keys
    raise UsageError(
        f"{issuer} publishes no OAuth or OpenID Connect metadata.",
        hint="Check WINNOW_HTTP=issuer=….",
    )
