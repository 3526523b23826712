"""What holds keys, passwords or cookies: by its name, and by its bytes whatever it is called.

A file is a secret where its form is one of keys (a PEM header above base64, a field with a private
number beside the field that names its kind), not where a text mentions one. Not for: which files
may be read at all (`files.py`).
"""

import json
import re
from collections.abc import Callable
from typing import Final

SECRET_NAME: Final = re.compile(
    r"\.|id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?$"
    r"|.*\.(?:env|pem|key|p12|pfx|jks|keystore|kdbx?|ppk|ovpn|pgpass|htpasswd)$|.*cookies?\.txt$",
    re.IGNORECASE,
)
"""Names of what is hidden, and of keys, passwords and a browser's cookies."""
_LOOKED_AT: Final = 4_096
"""Bytes in which a form shows itself, wherever it is not a PEM header."""
_WHOLE: Final = 200_000
"""Bytes in which the fields of JSON and of access to a cluster are looked for, behind long
certificates."""
_PEM: Final = re.compile(
    rb"-{4,5} ?BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)? ?-{4,5}\s+"
    rb"(?:[A-Za-z-]+: [^\r\n]{0,200}(?:\\\r?\n[^\r\n]{0,200})?\r?\n\s*)*"
    rb"(?:[A-Za-z0-9+/=]{16,80}\s*){2}"
)
"""A private key in PEM, OpenSSH, SSH2 or PGP armour: header, fields, and at least two lines of
base64."""
_TYPED: Final = re.compile(
    rb"\s*(?:# (?:Netscape )?HTTP Cookie File|PuTTY-User-Key-File-\d:|untrusted comment: .{0,80}secret key"
    rb"|-{4,5} ?BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY)"
)
"""How files of one kind of secret begin."""
_FIELDS: Final = (
    (b"AGE-SECRET-KEY-1", re.compile(rb"(?m)^AGE-SECRET-KEY-1[0-9A-Z]{50,}\s*$")),
    # WireGuard
    (b"[Interface]", re.compile(rb"(?m)^\s*PrivateKey\s*=\s*[A-Za-z0-9+/]{43}=")),
    (
        b"aws_secret_access_key",
        re.compile(rb"(?m)^\s*aws_secret_access_key\s*=\s*[A-Za-z0-9/+]{40}\s*$"),
    ),
    (b"machine ", re.compile(rb"(?m)^machine \S+\s+login \S+\s+password \S")),
    (b"/:_auth", re.compile(rb"(?m)^\s*//\S+/:_auth(?:Token|orization)?\s*=\s*[\w-]{20}")),
)
"""Lines that only such files have, each with a word to look for first."""
_KUBECONFIG: Final = re.compile(rb"(?m)^kind:[ \t]*Config[ \t]*\r?$")
_CLUSTER_KEY: Final = re.compile(rb"(?m)^\s*(?:client-key-data|token|password):[ \t]*[^\s{<]{8}")
"""How access to a cluster is called, and the fields of it that are secret."""
_LINES: Final = (
    # host:port:database:user:password
    re.compile(rb"[\w.*-]+:(?:\d{2,5}|\*):(?:[\w-]+|\*):(?:[\w.@-]+|\*):\S+"),
    # Cookies without their header: domain, flag, path, secure, expiry, name, value
    re.compile(rb"\S+\t(?:TRUE|FALSE)\t/\S*\t(?:TRUE|FALSE)\t\d+(?:\.\d+)?\t[^\t]+\t?.*"),
    # Names with hashes of passwords
    re.compile(rb"[\w.@-]+:\$(?:apr1|2[aby]|1|5|6|y)\$[^\s:]+(?::\d*){0,7}"),
    # Git's credentials
    re.compile(rb"https?://[^\s:/@]+:[^\s:/@]{8,}@[\w.-]+/?"),
)
"""Forms of which every line is one record."""
_LEAST: Final = 40
"""Letters of a key in JSON; a name or a path is shorter."""
_JSON_SIGNS: Final = (b'"private_key', b'"kty"', b'"client-key-data"', b'"auths"', b'"httpOnly"')


def is_secret(body: bytes) -> bool:
    """Return whether `body`, of any length, is a file of keys, passwords or cookies."""
    plain = _in_ascii(body)
    start = plain[:_LOOKED_AT].removeprefix(b"\xef\xbb\xbf")
    if _TYPED.match(start):
        return True
    if b"PRIVATE KEY" in plain and _PEM.search(plain.replace(b"\\n", b"\n")):
        return True
    whole = plain[:_WHOLE]
    if start.lstrip()[:1] in {b"{", b"["} and any(sign in whole for sign in _JSON_SIGNS):
        return _is_secret_json(whole)
    if _KUBECONFIG.search(whole) and _CLUSTER_KEY.search(whole):
        return True
    fields = any(sign in start and form.search(start) for sign, form in _FIELDS)
    return fields or _is_list(start, cut=len(plain) > _LOOKED_AT)


def _in_ascii(body: bytes) -> bytes:
    """Return `body`, of UTF-16 the halves that are letters of keys."""
    if body.startswith((b"\xff\xfe", b"\xfe\xff")) or (
        b"\x00" in body[:64] and b"\x00" not in body[:64][::2]
    ):
        return (
            body[2:].replace(b"\x00", b"")
            if body[:1] in {b"\xff", b"\xfe"}
            else body.replace(b"\x00", b"")
        )
    return body.replace(b"\x00", b"") if body[:64:2].count(0) > 8 else body


def _is_list(start: bytes, *, cut: bool) -> bool:
    """Whether every line is a record of the same form; the last one may be cut."""
    lines = [line.strip() for line in start.splitlines()]
    lines = [line for line in (lines[:-1] if cut else lines) if line and not line.startswith(b"#")]
    return bool(lines) and any(all(map(form.fullmatch, lines)) for form in _LINES)


def _is_secret_json(body: bytes) -> bool:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return False
    held = value if isinstance(value, list) else [value]
    held += [key for one in held if isinstance(one, dict) for key in _listed(one.get("keys"))]
    held += [
        one["user"]
        for top in held
        if isinstance(top, dict)
        for one in _listed(top.get("users"))
        if "user" in one
    ]
    return any(isinstance(one, dict) and any(is_one(one) for is_one in _JSON_FORMS) for one in held)


def _listed(value: object) -> list[dict[str, object]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _is_jwk(value: dict[str, object]) -> bool:
    """Whether a JSON Web Key has its private part (RFC 7518 §6)."""
    secret = value.get("k" if value.get("kty") == "oct" else "d")
    return "kty" in value and isinstance(secret, str) and len(secret) >= 16


def _is_cookie(value: dict[str, object]) -> bool:
    return {"name", "value", "domain", "httpOnly"} <= value.keys()


def _is_account(value: dict[str, object]) -> bool:
    held = (value.get(name) for name in ("private_key", "client-key-data"))
    if any(isinstance(one, str) and len(one) > _LEAST for one in held):
        return True
    auths = value.get("auths")
    return isinstance(auths, dict) and any(
        isinstance(one, dict) and one.get("auth") for one in auths.values()
    )


_JSON_FORMS: Final[tuple[Callable[[dict[str, object]], bool], ...]] = (
    _is_jwk,
    _is_cookie,
    _is_account,
)
