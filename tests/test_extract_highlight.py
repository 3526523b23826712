"""A real Chromium highlights what a citation names; skipped where none is there (the long form:
bench/citations)."""

import pytest

from bench.citations import highlight, missing
from tests.support.extras import need

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

PAGE = """<html lang="en"><title>Harbour</title><main><h1>The harbour at Orvane</h1>
<p>The harbour was dug in 1871. Some say that <b>it was</b> dug in 1871.</p>
<ul><li><div>Night boat</div><div>Leaves at nine and carries forty people.</div></li></ul>
<dl><dt>Harbour master</dt><dd>Ilse Marr, since 1998</dd></dl>
<table><tr><th>Pier</th><th>Length</th></tr><tr><td>North pier</td><td>120 m</td></tr>
<tr><td>South pier</td><td>90 m</td></tr></table>
<p>港は一八七一年に掘られました。長さは百二十メートルです。</p></main></html>"""


async def test_chromium_highlights_the_words_of_every_kind_of_unit() -> None:
    need("browser")
    if reason := missing():
        pytest.skip(reason)
    seen = await highlight({"harbour": PAGE}, 20)
    assert len(seen) >= 9
    assert [(one.wanted, one.highlighted, one.citation) for one in seen if not one.right] == []
