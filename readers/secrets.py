"""What holds keys, passwords or cookies: by its name, and by its bytes whatever it is
called.

A file is a secret if it has the format of keys (a PEM header above base64, a private
field next to its type), not if a text mentions one. Not for: which files may be read at
all (`files.py`)."""

import base64
import json
import re
from collections.abc import Iterator, Sequence
from html import unescape
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
_PEM: Final = re.compile(
    rb"-{4,5} ?BEGIN (?:(?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?|OpenVPN Static key V1) ?-{4,5}"
    rb"(?:\s+(?:[A-Za-z-]+: [^\r\n]{0,200}(?:\\\r?\n[^\r\n]{0,200})?\r?\n\s*)*"
    rb"(?:[A-Za-z0-9+/=]{16,80}\s*){2}"
    rb"|(?:(?:[\s\"'`+>#*|;,()]|\d{1,6}[\s:|]){0,60}[A-Za-z0-9+/=]{30,}){2})"
)
"""A private key in PEM, OpenSSH, SSH2 or PGP armour: header, fields, and at least two
lines of base64; also quoted, numbered, commented out, in strings."""
_PACKED_PEM: Final = re.compile(rb"LS0tLS1CRUdJTi[A-Za-z0-9+/]{86}")
"""How base64 of such armour begins."""
_SECRET_FORMS: Final = re.compile(
    # How files of one kind of secret begin
    rb"\A\s*(?:# (?:Netscape )?HTTP Cookie File|PuTTY-User-Key-File-\d:|untrusted comment: .{0,80}secret key"
    rb"|-{4,5} ?BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY|\$ANSIBLE_VAULT;|== ed25519v1-secret)"
    # Lines that only such files have
    rb"|^AGE-(?:SECRET-KEY|PLUGIN)-[0-9A-Z-]{50,}\s*$|<D>[A-Za-z0-9+/=\s]{80,}</D>"
    rb"|^[ \t]*(?:PrivateKey\s*=\s*[A-Za-z0-9+/]{43}=|aws_secret_access_key\s*=\s*[A-Za-z0-9/+]{40}\s*$)"
    rb"|^token = \{\"access_token\":|^Unseal Key \d+: \S{40}|<Key>Password</Key>\s*<Value[^>]*>[^<]"
    rb"|^machine \S+\s+login \S+\s+password \S|^[ \t]*//\S+/:_auth(?:Token|orization)?\s*=\s*[\w-]{20}",
    re.MULTILINE,
)
_SETTINGS: Final = re.compile(
    rb"(?:[ \t]*(?:[#;][^\n]*)?\n)*[ \t]*(?:\[[^\]\n]{1,60}\][ \t]*\n|[\w.-]+[ \t]*[=:{]|[\w-]+ \"[^\"\n]*\" \{)"
)
"""How a file of settings begins, as prose about one does not. Blanks of a line never
match its end: many empty lines would be parted in exponentially many ways."""
_SECRET_SETTING: Final = re.compile(
    rb"(?m)^[ \t]*(?:(?:password|passwd)\s*=\s*pypi-|(?:\w+_)?secret(?:_access)?_key\s*=\s*\S{30}"
    rb"|psk\s*=\s*\S{8}|oauth_token:\s*\S{20}|secret\s+\"[A-Za-z0-9+/=]{20,}\";)"
    rb"|^\[(?:client|mysql|mysqldump)\][ \t]*\n(?:[^\[\n]*\n)*?[ \t]*password\s*=\s*\S{6}"
    rb"|^kind:[ \t]*Secret[ \t]*\n(?:[^\n]*\n)*?(?:data|stringData):[ \t]*\n[ \t]+[\w.-]+:[ \t]*[^\s{<]{8}"
)
"""Lines of such a file that are secret: of programs that upload, stores, wireless
networks, commands, name servers, databases, clusters."""
_CLUSTER: Final = (
    re.compile(rb"(?m)^kind:[ \t]*Config[ \t]*$"),
    re.compile(rb"(?m)^[ \t]*(?:client-key-data|token|password):[ \t]*[^\s{<]{8}"),
)
"""How access to a cluster is called, and the fields of it that are secret."""
_EXPORTED: Final = re.compile(
    rb"(?=.*password,)(?=.*(?:url|uri|web site|hostname))(?=.*(?:user|login))(?:[\w ]*,){2,}"
    rb"|(?=.*access key id,)(?=.*secret access key,).*"
)
"""Names of columns that an export of passwords or keys has."""
_ENV_ASSIGNMENT: Final = re.compile(rb"(?:export |set )?[A-Z][A-Z0-9_]*=.*")
_ASSIGNED_SECRET: Final = re.compile(
    rb"(?m)^(?:export |set )?[A-Z0-9_]*(?:SECRET|TOKEN|PASSWORD|PASSWD|API_?KEY|PRIVATE)[A-Z0-9_]*="
    rb"[\"']?[\w+/.=-]{20}"
)
_SECRET_RECORD: Final = re.compile(
    # host:port:database:user:password
    rb"[\w.*-]+:(?:\d{2,5}|\*):(?:[\w-]+|\*):(?:[\w.@-]+|\*):\S+"
    # Cookies without their header: domain, flag, path, secure, expiry, name, value
    rb"|\S+\t(?:TRUE|FALSE)\t/\S*\t(?:TRUE|FALSE)\t\d+(?:\.\d+)?\t[^\t]+\t?.*"
    # Names with hashes of passwords
    rb"|[\w.@-]+:(?:!?\$(?:apr1|2[aby]|1|5|6|y)\$[^\s:]+|\{\w{3,8}\}[A-Za-z0-9+/=]{16,})(?::\d*){0,7}"
    rb"|[\w.@-]+:[!*]{1,2}(?::\d*){7}"
    # One-time passwords
    rb"|otpauth(?:-migration)?://\S+"
    # Secrets shared between hosts
    rb"|[^:]{0,80}:\s*(?:PSK|RSA|ECDSA|EAP|XAUTH)\s+\S.*"
    # Git's credentials
    rb"|https?://[^\s:/@]+:[^\s:/@]{8,}@[\w.-]+/?"
)
"""Forms of which every line is one record."""
_END_OF_LINE: Final = re.compile(r"</(?:p|li|h\d|div|tr)>|<br\b[^<>]{0,200}>")
_MARKUP_TAG: Final = re.compile(r"<[^<>]{0,2000}>")
_JSON_SIGNS: Final = re.compile(
    rb'(?i)"(?:private_key|kty|client-key-data|auths|httpOnly|client_secret|ciphertext|password|cookie|authorization)'
)


def is_secret(body: bytes) -> bool:
    """Return whether `body`, of any length, is a file of keys, passwords or cookies.

    Private keys are found anywhere; other forms in its first `_SECRET_BYTES` or `_SEARCHED_SECRET_BYTES`
    bytes."""
    ascii_body = _in_ascii(body).replace(b"\r", b"\n")
    start = ascii_body[:_SECRET_BYTES].removeprefix(b"\xef\xbb\xbf")
    searched_bytes = ascii_body[:_SEARCHED_SECRET_BYTES]
    if _SECRET_FORMS.search(start) or _has_pem(ascii_body):
        return True
    if start.lstrip()[:1] in {b"{", b"["} and _JSON_SIGNS.search(searched_bytes):
        return _is_secret_json(searched_bytes)
    if all(form.search(searched_bytes) for form in _CLUSTER):
        return True
    if _SETTINGS.match(start) and _SECRET_SETTING.search(start):
        return True
    return _is_list(start, cut=len(ascii_body) > _SECRET_BYTES)


def holds_secret(html: str) -> bool:
    """Return whether what a document became holds keys: its text, or a table of it, is such
    a file as `is_secret` knows."""
    cells = (
        html.replace("</td>", "\t").replace("</th>", "\t").replace("<table", "\f<table")
    )
    text = unescape(_MARKUP_TAG.sub("", _END_OF_LINE.sub("\n", cells)))
    pieces = text.encode("utf-8", "replace").split(b"\f")
    return any(map(is_secret, pieces))


def _has_pem(ascii_body: bytes) -> bool:
    """Whether a key is anywhere in a file, as it is or once more in base64."""
    is_named = b"PRIVATE KEY" in ascii_body or b"OpenVPN Static" in ascii_body
    if is_named and _PEM.search(ascii_body.replace(b"\\n", b"\n")):
        return True
    packed = _PACKED_PEM.finditer(ascii_body) if b"LS0tLS1CRUdJTi" in ascii_body else ()
    return any(b"PRIVATE KEY" in base64.b64decode(match[0]) for match in packed)


def _in_ascii(body: bytes) -> bytes:
    """Return `body`, of UTF-16 the halves that are letters of keys."""
    is_utf16 = body.startswith((b"\xff\xfe", b"\xfe\xff"))
    if is_utf16 or max(body[:64:2].count(0), body[1:64:2].count(0)) > 8:
        return body[2 * is_utf16 :].replace(b"\x00", b"")
    return body


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
    return _is_export(lines) or all(map(_SECRET_RECORD.fullmatch, lines))


def _is_export(lines: Sequence[bytes]) -> bool:
    """Whether lines are a table whose columns are those of exported passwords."""
    columns = re.sub(rb"[;|\t]", b",", lines[0].lower().replace(b'"', b"")) + b","
    return len(lines) > 1 and _EXPORTED.fullmatch(columns) is not None


def _is_secret_json(body: bytes) -> bool:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return any(map(_is_secret_object, _objects(value)))


def _objects(value: object) -> Iterator[dict[str, object]]:
    """Yield the objects in a JSON value."""
    todo = [value]
    while todo:
        node = todo.pop()
        if isinstance(node, dict):
            yield node
            todo += node.values()
        elif isinstance(node, list):
            todo += node


def _is_secret_object(value: dict[str, object]) -> bool:
    """Whether an object holds a key (RFC 7518 §6, a service account, a cluster's, a client's of a
    cloud, a wallet's), a cookie, or a login of a manager of passwords or a registry."""

    def has_text(name: str, length: int) -> bool:
        text = value.get(name)
        return isinstance(text, str) and len(text) >= length

    def has_fields(name: str, *fields: str) -> bool:
        child = value.get(name)
        return isinstance(child, dict) and all(map(child.get, fields))

    auths = value.get("auths")
    return (
        ("kty" in value and has_text("k" if value["kty"] == "oct" else "d", 16))
        or has_text("private_key", 41)
        or has_text("client-key-data", 41)
        or ("client_id" in value and has_text("client_secret", 20))
        or {"name", "value", "domain", "httpOnly"} <= value.keys()
        # A header of a request that a browser recorded (HAR)
        or (
            str(value.get("name")).lower() in {"cookie", "authorization"}
            and has_text("value", 8)
        )
        or has_fields("crypto", "ciphertext", "kdf")
        or has_fields("Crypto", "ciphertext", "kdf")
        or has_fields("login", "username", "password")
        or any(
            isinstance(login, dict) and login.get("auth")
            for login in (auths.values() if isinstance(auths, dict) else ())
        )
    )
