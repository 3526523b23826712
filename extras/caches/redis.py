"""Valkey and Redis."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from cache.server import CacheServer, RowBackend
from extra import importing


def _connect(
    url: str, kinds: Iterable[str], *, shared: bool
) -> Mapping[str, RowBackend]:
    with importing("redis", "A cache server (cache_url)"):
        from extras.redis import backends_at  # noqa: PLC0415  imports the package of the extra

    return backends_at(url, kinds, shared=shared)


CACHE: Final = CacheServer(
    address=re.compile(r"((redis|valkey)s?://[^/\s]+(/\d*)?|unix://\S+)(\?\S*)?"),
    form="redis://127.0.0.1:6379/0",
    connect=_connect,
    extra="redis",
)
