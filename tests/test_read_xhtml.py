"""XHTML that is sent as such: elements that XML closes at once swallow nothing of what follows."""

import pytest

import readers

KIND = "application/xhtml+xml"
TEXT = "<p>The lock opens at <b/>six.</p>"
OWN = {
    "script and title at once": (
        f'<?xml version="1.0"?><html><head><title/><script src="a.js"/></head><body>{TEXT}',
        KIND,
    ),
    "style and a frame": (
        f'<html><head><style type="x"/></head><body><iframe src="b"/>{TEXT}',
        KIND,
    ),
    "an anchor and a box": (f'<html><body><a id="top"/><div class="rule"/>{TEXT}', KIND),
    "a field for text": (f'<html><body><form><textarea name="q"/></form>{TEXT}', KIND),
    "a section of characters": (
        "<html><body><p><![CDATA[The lock opens at ]]>six.</p>",
        "text/xml",
    ),
    "a script in a section": (
        f"<html><head><script>//<![CDATA[\nif (1 < 2) shut();\n//]]></script></head><body>{TEXT}",
        KIND,
    ),
    "XML by how it begins": (f'<?xml version="1.1"?>\n<html><body><select/>{TEXT}', "text/html"),
}


@pytest.mark.parametrize("case", OWN)
def test_what_follows_an_element_that_is_closed_at_once_is_read(case: str) -> None:
    markup, kind = OWN[case]
    whole = markup + ("" if "</body>" in markup else "</body></html>")
    read = readers.read(whole.encode(), content_type=kind)
    assert [block.text for block in read.blocks] == ["The lock opens at six."]
