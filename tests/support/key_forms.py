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
_COMMON: Final = {
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
_LINES: Final = KEY.splitlines()


def hexadecimal(count: int, width: int) -> bytes:
    return b"".join(b"%0*x\n" % (width, 7919**line) for line in range(2, count + 2))


KEYS: Final = _COMMON | {
    "static key of a tunnel": b"# 2048 bit\n-----BEGIN OpenVPN Static key V1-----\n%b-----END OpenVPN"
    b" Static key V1-----\n" % hexadecimal(16, 32),
    "exported by a browser": b"name,url,username,password,note\nx.org,https://x.org/login,anna,s3cret99,\n",
    "exported with semicolons": b"url;username;password\nhttps://x.org;anna;s3cret99\n",
    "a database of a manager": b"<KeePassFile><Entry><String><Key>UserName</Key><Value>anna</Value></String><String>"
    b"<Key>Password</Key>" + b"<Value>s3cret99</Value></String></Entry></KeePassFile>",
    "requests that a browser recorded": json.dumps(
        {
            "log": {
                "entries": [{"request": {"headers": [{"name": "Cookie", "value": "sid=s3cret99"}]}}]
            }
        }
    ).encode(),
    "set by a batch file": b"set API_KEY=sk-%b\n" % (b"b" * 30),
    "of a program that copies": b'[r]\ntype = drive\ntoken = {"access_token":"ya29.%b"}\n'
    % (b"e" * 40),
    "shares of a vault": b"Unseal Key 1: %b\nUnseal Key 2: %b\n" % (b"x" * 44, b"y" * 44),
    "exported by another": b'"url","username","password","httpRealm"\n"https://x.org","anna","s3cret99",""\n',
    "exported by a manager": b"folder,type,name,login_uri,login_username,login_password\n,,x,https://x.org,anna,s3\n",
    "exported as JSON": json.dumps(
        {"items": [{"name": "x", "login": {"username": "anna", "password": "s3cret99"}}]}
    ).encode(),
    "state of a driven browser": json.dumps(
        {"cookies": [{"name": "s", "value": "a", "domain": ".x.org", "httpOnly": True}]}
    ).encode(),
    "secret of a cluster": b"apiVersion: v1\nkind: Secret\nmetadata:\n  name: shop\ndata:\n  password: %b\n"
    % base64_of(24),
    "user of a cloud": json.dumps(
        {"client_id": "7.apps", "client_secret": "d" * 24, "refresh_token": "x" * 60}
    ).encode(),
    "client of a cloud": json.dumps(
        {"installed": {"client_id": "7.apps", "client_secret": "F" * 28}}
    ).encode(),
    "shadow": b"root:$6$ab$%b:19000:0:99999:7:::\ndaemon:*:18375:0:99999:7:::\nsshd:!:18375::::::\n"
    % (b"c" * 86),
    "other hashes": b"anna:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=\n",
    "of a database": b"[client]\nuser=root\npassword=s3cret99\n",
    "uploads": b"[distutils]\nindex-servers = x\n\n[x]\nusername = __token__\npassword = pypi-%b\n"
    % (b"A" * 90),
    "wireless": b'ctrl_interface=/run/x\nnetwork={\n  ssid="harbour"\n  psk="s3cret99x"\n}\n',
    "remote stores": b"[store]\ntype = s3\nsecret_access_key = %b\n" % (b"w" * 40),
    "access keys": b"Access key ID,Secret access key\nAKIA%b,%b\n" % (b"X" * 16, b"w" * 40),
    "in a patch": b"--- a/k\n+++ b/k\n@@ -0,0 +1,12 @@\n"
    + b"".join(b"+%b\n" % one for one in _LINES),
    "quoted": b"The key:\n" + b"".join(b"> %b\n" % one for one in _LINES),
    "commented out": b"".join(b"# %b\n" % one for one in _LINES),
    "numbered lines": b"".join(b"%5d  %b\n" % one for one in enumerate(_LINES, start=1)),
    "in strings": b"key = (\n%b)\n" % b"".join(b'    "%b\\n"\n' % one for one in _LINES),
    "in a notebook": json.dumps({"source": [f"{one.decode()}\n" for one in _LINES]}).encode(),
    "once more in base64": b"key: %b\n" % base64.b64encode(KEY),
    "on one line": KEY.replace(b"\n", b" "),
    "numbers in XML": b"<RSAKeyValue><Modulus>%b</Modulus><D>%b</D></RSAKeyValue>"
    % (base64_of(256), base64_of(255)),
    "age of a plug-in": b"# Serial: 1\nAGE-PLUGIN-YUBIKEY-1%b\n" % (b"Q" * 60),
    "a wallet": json.dumps(
        {"address": "ab", "crypto": {"ciphertext": "cd" * 32, "kdf": "scrypt"}}
    ).encode(),
    "a vault": b"$ANSIBLE_VAULT;1.1;AES256\n%b" % hexadecimal(8, 80),
    "an environment": b"# production\nDATABASE_URL=postgres://db/shop\nSECRET_KEY=%b\n"
    % (b"x" * 40),
    "one-time passwords": b"otpauth://totp/x.org:anna?secret=JBSWY3DPEHPK3PXP&issuer=x\n",
    "a command's token": b"github.com:\n    user: anna\n    oauth_token: gho_%b\n" % (b"x" * 36),
    "shared between hosts": b': PSK "s3cret99x"\n%any @x : PSK "other99x"\n',
    "of name servers": b'key "rndc-key" {\n\talgorithm hmac-sha256;\n\tsecret "%b";\n};\n'
    % base64_of(32),
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
    "a manual of clusters": b"# Secrets\n\n```\napiVersion: v1\nkind: Secret\ndata:\n  password: czNjcmV0OTk=\n```\n",
    "a manual of networks": b'# Wireless\n\nWrite it so:\n\n    network={\n    psk="s3cret99x"\n    }\n',
    "the body of a request": json.dumps({"username": "anna", "password": "s3cret99"}).encode(),
    "a table of boats": b"name,url,user,berth\nAnna,https://x.org,bo,7\n",
    "a table about passwords": b"url,user,password policy\nx.org,all,strict\n",
    "assignments": b"LANG=en\nTOKEN_LIMIT=512\nAPI_KEY=<yours>\n",
    "quoted prose": b"> -----BEGIN PRIVATE" + b" KEY-----\n> is how it begins.\n",
    "a client database": b"[client]\nuser=root\nhost=localhost\n",
    "log": b"10:30:22:INFO:main started\n",
}
