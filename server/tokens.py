"""Who may call the HTTP server: access tokens of an OAuth authorization server, checked here (RFC 9068, RFC 8707).

Winnow is a resource server only: it checks signature, issuer, audience and expiry of a JWT against the issuer's public
keys. Not for: fixed tokens and rates (`server/gate.py`), issuing tokens.
"""

import logging
import time
from collections.abc import Callable
from typing import Final

import httpx2
import jwt
from mcp.server.auth.provider import AccessToken

from errors import UsageError

ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Signatures with a public key only: a shared secret cannot be published, and `none` is no signature."""
KEYS_LAST: Final = 600.0
"""Seconds after which the issuer's keys are asked for again."""
ASK_AT_MOST: Final = 30.0
"""Seconds between two questions for a key that is not among those known, so that forged tokens cause no traffic."""
WITHIN: Final = 10.0
_METADATA: Final = ("/.well-known/oauth-authorization-server", "/.well-known/openid-configuration")
_log: Final = logging.getLogger("winnow.http")


class JwtVerifier:
    """Checks access tokens of one issuer for one resource."""

    def __init__(self, issuer: str, resource: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Take the issuer's URL and our own, as the tokens name them; `clock` gives seconds."""
        self._issuer = issuer
        self._resource = resource
        self._clock = clock
        self._keys: dict[str, jwt.PyJWK] = {}
        self._asked = float("-inf")

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return who the token stands for, None for a token that is not valid here and now."""
        try:
            key = await self._key(str(jwt.get_unverified_header(token).get("kid", "")))
            if key is None:
                return None
            claims = jwt.decode(
                token,
                key.key,
                algorithms=list(ALGORITHMS),
                audience=self._resource,
                issuer=self._issuer,
                options={"require": ["exp", "iss", "aud"]},
            )
        except jwt.PyJWTError as error:
            _log.info("token refused: %s", type(error).__name__)
            return None
        scope = claims.get("scope", "")
        return AccessToken(
            token=token,
            client_id=str(claims.get("client_id") or claims.get("azp") or claims.get("sub") or "unknown"),
            scopes=scope.split() if isinstance(scope, str) else [],
            expires_at=int(claims["exp"]),
            resource=self._resource,
            subject=str(claims["sub"]) if "sub" in claims else None,
        )

    async def _key(self, kid: str) -> jwt.PyJWK | None:
        age = self._clock() - self._asked
        if age > KEYS_LAST or (kid not in self._keys and age > ASK_AT_MOST):
            self._asked = self._clock()
            try:
                self._keys = await _fetch_keys(self._issuer)
            except (httpx2.HTTPError, ValueError, UsageError, jwt.PyJWTError) as error:
                _log.warning("the keys of %s cannot be read: %s", self._issuer, error)
        return self._keys.get(kid)


async def _fetch_keys(issuer: str) -> dict[str, jwt.PyJWK]:
    async with httpx2.AsyncClient(timeout=WITHIN) as http:
        for path in _METADATA:
            answer = await http.get(issuer.rstrip("/") + path)
            if answer.status_code != httpx2.codes.OK:
                continue
            said = answer.json()
            if said.get("issuer", "").rstrip("/") != issuer.rstrip("/") or "jwks_uri" not in said:
                raise UsageError(f"The metadata of {issuer} names another issuer or no keys.")
            found = await http.get(said["jwks_uri"])
            found.raise_for_status()
            keys = jwt.PyJWKSet.from_dict(found.json()).keys
            return {str(key.key_id): key for key in keys}
    raise UsageError(f"{issuer} publishes no metadata.", hint="Check WINNOW_HTTP_ISSUER.")
