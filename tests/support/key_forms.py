"""Forms of files with keys, passwords or cookies, and of texts that only look like them, by name.

Not for: names of such files (`attacks.py`). The words that begin a key are written in two parts,
since this file is read by the product's own tests.
"""

import base64
import json
import random
from typing import Final


def base64_of(count: int) -> bytes:
    return base64.b64encode(random.Random(count).randbytes(count))


def pem(name: str, *, count: int = 600, fields: bytes = b"") -> bytes:
    body = base64_of(count)
    lines = b"\n".join(body[at : at + 64] for at in range(0, len(body), 64))
    return b"-----BEGIN %b-----\n%b%b\n-----END %b-----\n" % (
        name.encode(),
        fields,
        lines,
        name.encode(),
    )


KEY: Final = pem("PRIVATE" + " KEY")
CERTIFICATE: Final = pem("CERTIFICATE", count=3_000)
CLUSTER: Final = (
    b"apiVersion: v1\nkind: Config\nclusters:\n- cluster:\n    certificate-authority-data: %b\nusers:\n- user:\n    "
    b"client-key-data: %b\n" % (base64_of(3_000), base64_of(900))
)
KEYS: Final = {
    "alone": KEY,
    "encrypted": pem(
        "RSA PRIVATE" + " KEY", fields=b"Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0123\n\n"
    ),
    "openssh": pem("OPENSSH PRIVATE" + " KEY"),
    "behind certificates": CERTIFICATE * 2 + KEY,
    "parameters first": pem("EC PARAMETERS", count=8) + pem("EC PRIVATE" + " KEY", count=121),
    "bag": b"Bag Attributes\n    localKeyID: 01 02\n" + KEY,
    "mark of order": b"\xef\xbb\xbf" + KEY,
    "utf-16": KEY.decode().encode("utf-16"),
    "utf-16 unmarked": KEY.decode().encode("utf-16-le"),
    "windows lines": KEY.replace(b"\n", b"\r\n"),
    "in yaml": b"tls:\n  key: |\n" + b"".join(b"    %b\n" % line for line in KEY.splitlines()),
    "putty": b"PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\n",
    "age": b"# public key: age1x\nAGE-SECRET-KEY-1" + b"Q" * 58 + b"\n",
    "ssh2": b'---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\nComment: "x"\n%b\n%b\n'
    % (base64_of(48), base64_of(48)),
    "pgp": pem("PGP PRIVATE" + " KEY BLOCK", fields=b"Version: 2\n\n"),
    "wireguard": b"[Interface]\nAddress = 10.0.0.1/24\nPrivateKey = %b\n" % base64_of(32),
    "service account": json.dumps(
        {"type": "service_account", "private_key": KEY.decode()}
    ).encode(),
    "jwk": json.dumps({"kty": "RSA", "n": "x" * 300, "e": "AQAB", "d": "y" * 300}).encode(),
    "jwk set": json.dumps({"keys": [{"kty": "EC", "x": "a" * 43, "d": "c" * 43}]}).encode(),
    "kubeconfig": CLUSTER,
    "pgpass": b"# shop\nlocalhost:5432:shop:anna:s3cret\ndb.example.org:*:*:bob:pw\n",
    "cookies as json": json.dumps(
        [{"domain": ".x.org", "name": "s", "value": "a", "httpOnly": True}]
    ).encode(),
    "cookies": b"# Netscape HTTP Cookie File\n.x.org\tTRUE\t/\tTRUE\t1999999999\tsid\tabc\n",
    "cookies without head": b".x.org\tTRUE\t/\tTRUE\t1999999999\tsid\tabc\n",
    "password hashes": b"anna:$apr1$ab$cdefgh\nbob:$2y$05$abcdefg\n",
    "netrc": b"machine x.org login anna password s3cret\n",
}
NO_KEYS: Final = {
    "mention": b"The file begins with -----BEGIN RSA PRIVATE" + b" KEY----- and ends alike.\n",
    "example": b"So it looks:\n-----BEGIN PRIVATE"
    + b" KEY-----\n...\n-----END PRIVATE"
    + b" KEY-----\n",
    "certificate": CERTIFICATE,
    "public key set": json.dumps({"keys": [{"kty": "RSA", "n": "x" * 300, "e": "AQAB"}]}).encode(),
    "users": b"root:x:0:0:root:/root:/bin/bash\n",
    "config map": b"apiVersion: v1\nkind: ConfigMap\ndata:\n  token: abcdefghijk\n",
    "properties": b"db.user=anna\ndb.password=later\n",
    "log": b"10:30:22:INFO:main started\n",
}
