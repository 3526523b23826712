"""What holds keys, passwords or cookies: by its name, and by its bytes whatever it is
called.

A file is a secret if it has the format of keys (a PEM header above base64, a private
field next to its type), not if a text mentions one. Not for: which files may be read at
all (`files.py`)."""

import base64
import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

SECRET_NAME: Final = re.compile(
    r"\.|id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?$"
    r"|.*\.(?:env|pem|key|p12|pfx|jks|keystore|kdbx?|ppk|ovpn|pgpass|htpasswd)$|.*cookies?\.txt$",
    re.IGNORECASE,
)
"""Names of what is hidden, and of keys, passwords and a browser's cookies."""
_SECRET_BYTES: Final = 4_096
"""Bytes in which a form shows itself, wherever it is not a PEM header."""
_SEARCHED_SECRET_BYTES: Final = 200_000
"""Bytes in which the fields of JSON and of access to a cluster are searched, after long
certificates."""
_KEY_HEADER: Final = rb"-{4,5} ?BEGIN (?:(?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?|OpenVPN Static key V1) ?-{4,5}"
_PEM: Final = re.compile(
    _KEY_HEADER
    + rb"\s+(?:[A-Za-z-]+: [^\r\n]{0,200}(?:\\\r?\n[^\r\n]{0,200})?\r?\n\s*)*"
    rb"(?:[A-Za-z0-9+/=]{16,80}\s*){2}"
)
"""A private key in PEM, OpenSSH, SSH2 or PGP armour: header, fields, and at least two
lines of base64."""
_PEM_WITHIN: Final = re.compile(
    _KEY_HEADER
    + rb"(?:(?:[\s\"'`+>#*|;,()]|\d{1,6}[\s:|]){0,60}[A-Za-z0-9+/=]{30,}){2}"
)
"""Key lines in other forms: quoted, numbered, commented out, in strings."""
_PACKED_PEM: Final = re.compile(rb"LS0tLS1CRUdJTi[A-Za-z0-9+/]{86}")
"""How base64 of such armour begins."""
_TYPED: Final = re.compile(
    rb"\s*(?:# (?:Netscape )?HTTP Cookie File|PuTTY-User-Key-File-\d:|untrusted comment: .{0,80}secret key"
    rb"|-{4,5} ?BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY|\$ANSIBLE_VAULT;|== ed25519v1-secret)"
)
"""How files of one kind of secret begin."""
_FIELDS: Final = (
    (b"AGE-", re.compile(rb"(?m)^AGE-(?:SECRET-KEY|PLUGIN)-[0-9A-Z-]{50,}\s*$")),
    (b"<RSAKeyValue>", re.compile(rb"<D>[A-Za-z0-9+/=\s]{80,}</D>")),
    # WireGuard
    (b"[Interface]", re.compile(rb"(?m)^\s*PrivateKey\s*=\s*[A-Za-z0-9+/]{43}=")),
    (
        b"aws_secret_access_key",
        re.compile(rb"(?m)^\s*aws_secret_access_key\s*=\s*[A-Za-z0-9/+]{40}\s*$"),
    ),
    (b"machine ", re.compile(rb"(?m)^machine \S+\s+login \S+\s+password \S")),
    (
        b"/:_auth",
        re.compile(rb"(?m)^\s*//\S+/:_auth(?:Token|orization)?\s*=\s*[\w-]{20}"),
    ),
)
"""Lines that only such files have, each with a word to look for first."""
_SETTINGS: Final = re.compile(
    rb"(?:\s*(?:[#;][^\n]*)?\n)*\s*(?:\[[^\]\n]{1,60}\]\s*\n|[\w.-]+\s*[=:{]|[\w-]+ \"[^\"\n]*\" \{)"
)
"""How a file of settings begins, as prose about one does not."""
_SECRET_SETTING: Final = re.compile(
    rb"(?m)^\s*(?:(?:password|passwd)\s*=\s*pypi-|(?:\w+_)?secret(?:_access)?_key\s*=\s*\S{30}"
    rb"|psk\s*=\s*\S{8}|oauth_token:\s*\S{20}|secret\s+\"[A-Za-z0-9+/=]{20,}\";)"
    rb"|^\[(?:client|mysql|mysqldump)\]\s*\n(?:[^\[\n]*\n)*?\s*password\s*=\s*\S{6}"
    rb"|^kind:[ \t]*Secret\s*\n(?:[^\n]*\n)*?(?:data|stringData):\s*\n\s+[\w.-]+:\s*[^\s{<]{8}"
)
"""Lines of such a file that are secret: of programs that upload, stores, wireless
networks, commands, name servers, databases, clusters."""
_EXPORTED: Final = (
    (b"password,", (b"url", b"uri", b"web site", b"hostname"), (b"user", b"login")),
    (b"secret access key,", (b"access key id,",), (b"",)),
)
"""Names of columns that an export of passwords or keys has: one, one of each of the
others."""
_CSV_COLUMNS: Final = re.compile(rb"(?:[\w ]*,){2,}")
_ENV_ASSIGNMENT: Final = re.compile(rb"(?:export )?[A-Z][A-Z0-9_]*=.*")
_ASSIGNED_SECRET: Final = re.compile(
    rb"(?m)^(?:export )?[A-Z0-9_]*(?:SECRET|TOKEN|PASSWORD|PASSWD|API_?KEY|PRIVATE)[A-Z0-9_]*="
    rb"[\"']?[\w+/.=-]{20}"
)
_KUBECONFIG: Final = re.compile(rb"(?m)^kind:[ \t]*Config[ \t]*\r?$")
_CLUSTER_KEY: Final = re.compile(
    rb"(?m)^\s*(?:client-key-data|token|password):[ \t]*[^\s{<]{8}"
)
"""How access to a cluster is called, and the fields of it that are secret."""
_LINES: Final = (
    # host:port:database:user:password
    re.compile(rb"[\w.*-]+:(?:\d{2,5}|\*):(?:[\w-]+|\*):(?:[\w.@-]+|\*):\S+"),
    # Cookies without their header: domain, flag, path, secure, expiry, name, value
    re.compile(
        rb"\S+\t(?:TRUE|FALSE)\t/\S*\t(?:TRUE|FALSE)\t\d+(?:\.\d+)?\t[^\t]+\t?.*"
    ),
    # Names with hashes of passwords
    re.compile(
        rb"[\w.@-]+:(?:!?\$(?:apr1|2[aby]|1|5|6|y)\$[^\s:]+|\{\w{3,8}\}[A-Za-z0-9+/=]{16,})(?::\d*){0,7}"
        rb"|[\w.@-]+:[!*]{1,2}(?::\d*){7}"
    ),
    # One-time passwords
    re.compile(rb"otpauth(?:-migration)?://\S+"),
    # Secrets shared between hosts
    re.compile(rb"[^:]{0,80}:\s*(?:PSK|RSA|ECDSA|EAP|XAUTH)\s+\S.*"),
    # Git's credentials
    re.compile(rb"https?://[^\s:/@]+:[^\s:/@]{8,}@[\w.-]+/?"),
)
"""Forms of which every line is one record."""
_KEY_LETTERS: Final = 40
"""Letters of a key in JSON; a name or a path is shorter."""
_JSON_SIGNS: Final = tuple(
    f'"{name}'.encode()
    for name in (
        *("private_key", "kty", "client-key-data", "auths", "httpOnly"),
        *("client_secret", "ciphertext", "password"),
    )
)
_MOST_VALUES: Final = 20_000
"""Objects of a JSON file that are looked at."""


def _has_secret_setting(start: bytes, searched_bytes: bytes) -> bool:
    """Whether a file configures access to a cluster, or other settings of its `start`
    hold a secret."""
    if _KUBECONFIG.search(searched_bytes) and _CLUSTER_KEY.search(searched_bytes):
        return True
    settings = _SETTINGS.match(start)
    return settings is not None and _SECRET_SETTING.search(start) is not None


def is_secret(body: bytes) -> bool:
    """Return whether `body`, of any length, is a file of keys, passwords or cookies.

    Private keys are found anywhere; other forms in its first `_SECRET_BYTES` or `_SEARCHED_SECRET_BYTES`
    bytes."""
    ascii_body = _in_ascii(body)
    start = ascii_body[:_SECRET_BYTES].removeprefix(b"\xef\xbb\xbf")
    if _TYPED.match(start) or _has_pem(ascii_body):
        return True
    searched_bytes = ascii_body[:_SEARCHED_SECRET_BYTES]
    if start.lstrip()[:1] in {b"{", b"["} and any(
        marker in searched_bytes for marker in _JSON_SIGNS
    ):
        return _is_secret_json(searched_bytes)
    if _has_secret_setting(start, searched_bytes):
        return True
    fields = any(marker in start and form.search(start) for marker, form in _FIELDS)
    return fields or _is_list(start, cut=len(ascii_body) > _SECRET_BYTES)


def _has_pem(ascii_body: bytes) -> bool:
    """Whether a key is anywhere in a file, as it is or once more in base64."""
    if b"PRIVATE KEY" in ascii_body or b"OpenVPN Static" in ascii_body:
        lines = ascii_body.replace(b"\\n", b"\n")
        if _PEM.search(lines) or _PEM_WITHIN.search(lines):
            return True
    packed = _PACKED_PEM.finditer(ascii_body) if b"LS0tLS1CRUdJTi" in ascii_body else ()
    return any(b"PRIVATE KEY" in base64.b64decode(match[0]) for match in packed)


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
    """Whether every line is a record of the same form; the last one may be cut.

    False for an empty file."""
    lines = [line.strip() for line in start.splitlines()]
    lines = [
        line
        for line in (lines[:-1] if cut else lines)
        if line and not line.startswith(b"#")
    ]
    if not lines:
        return False
    if all(map(_ENV_ASSIGNMENT.fullmatch, lines)):
        return _ASSIGNED_SECRET.search(start) is not None
    return _is_export(lines) or any(all(map(form.fullmatch, lines)) for form in _LINES)


def _is_export(lines: Sequence[bytes]) -> bool:
    """Whether lines are a table whose columns are those of exported passwords."""
    head = lines[0].lower().replace(b'"', b"") + b","
    is_known = any(
        name in head
        and all(any(map(head.__contains__, names)) for names in required_names)
        for name, *required_names in _EXPORTED
    )
    return len(lines) > 1 and is_known and _CSV_COLUMNS.fullmatch(head) is not None


def _is_secret_json(body: bytes) -> bool:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return any(
        is_one(json_object) for json_object in _objects(value) for is_one in _JSON_FORMS
    )


def _objects(value: object) -> Iterator[dict[str, object]]:
    """Yield the objects in a JSON value, some thousands at most."""
    todo, seen = [value], 0
    while todo and seen < _MOST_VALUES:
        node = todo.pop()
        if isinstance(node, dict):
            seen += 1
            yield node
            todo += node.values()
        elif isinstance(node, list):
            todo += node


def _is_jwk(value: dict[str, object]) -> bool:
    """Whether a JSON Web Key has its private part (RFC 7518 §6)."""
    secret = value.get("k" if value.get("kty") == "oct" else "d")
    return "kty" in value and isinstance(secret, str) and len(secret) >= 16


def _is_cookie(value: dict[str, object]) -> bool:
    return {"name", "value", "domain", "httpOnly"} <= value.keys()


def _is_account(value: dict[str, object]) -> bool:
    held = (value.get(name) for name in ("private_key", "client-key-data"))
    if any(isinstance(key, str) and len(key) > _KEY_LETTERS for key in held):
        return True
    auths = value.get("auths")
    return isinstance(auths, dict) and any(
        isinstance(login, dict) and login.get("auth") for login in auths.values()
    )


def _is_client(value: dict[str, object]) -> bool:
    """Whether a program's access to a cloud has its secret."""
    secret = value.get("client_secret")
    return "client_id" in value and isinstance(secret, str) and len(secret) >= 20


def _is_wallet(value: dict[str, object]) -> bool:
    held = value.get("crypto") or value.get("Crypto")
    return isinstance(held, dict) and {"ciphertext", "kdf"} <= held.keys()


def _is_login(value: dict[str, object]) -> bool:
    """Whether an entry of a manager of passwords has one."""
    login = value.get("login")
    return isinstance(login, dict) and bool(
        login.get("username") and login.get("password")
    )


_JSON_FORMS: Final[tuple[Callable[[dict[str, object]], bool], ...]] = (
    _is_jwk,
    _is_cookie,
    _is_account,
    _is_client,
    _is_wallet,
    _is_login,
)
