"""Values of the cache under a secret."""

from pathlib import Path

import pytest

from cache.rows import Cipher, RefusedRow
from cache.store import open_stores


def test_values_under_a_secret_are_found_with_it_alone_and_not_readable_on_disk(
    tmp_path: Path,
) -> None:
    for secret, readable in (("", True), ("correct horse battery staple", False)):
        folder = tmp_path / str(readable)
        stores = open_stores(folder, size_limit=10**9, secret=secret)
        stores.sessions.set_json("session:a", "Orvane")
        stores.close()
        on_disk = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
        assert (b"Orvane" in on_disk) == readable
    values = []
    for secret in ("correct horse battery staple", "another", ""):
        stores = open_stores(tmp_path / "False", size_limit=10**9, secret=secret)
        values.append(stores.sessions.get_json("session:a"))
        stores.close()
    assert values == ["Orvane", None, None]


def test_a_locked_value_under_another_name_is_refused() -> None:
    cipher = Cipher("a secret")
    locked = cipher.lock("pages:a", b"value")
    assert cipher.open("pages:a", locked) == b"value"
    changed = locked[:-1] + bytes([locked[-1] ^ 1])
    for name, blob in (("pages:b", locked), ("pages:a", changed), ("pages:a", b"short")):
        with pytest.raises(RefusedRow):
            cipher.open(name, blob)
