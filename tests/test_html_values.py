"""Values that a page draws come out as values: numbers, prices, formulas, marks, listings.

Where nothing must be distinguished, the expectation is what Chromium shows (`innerText`, scripts
barred); elsewhere it is that with the marks that plain text needs.
"""

import pytest

from pipeline.evidence.render import Kept, Style, render
from readers.html.blocks import content_blocks
from readers.html.clean import clean
from readers.html.document import read_document
from readers.page import Page

MATH = "<math><mfrac><mrow><mi>a</mi><mo>+</mo><mi>b</mi></mrow><mn>2</mn></mfrac></math>"
SQUARE = "<msup><mi>x</mi><mn>2</mn></msup>"
TEX = (
    f"<math><semantics>{SQUARE}<annotation encoding='application/x-tex'>{{\\displaystyle "
    f"x^{{2}}}}</annotation>"
)


def shown(html: str) -> str:
    text, _ = content_blocks(clean(html))
    return text


def written(html: str) -> str:
    return render(
        read_document(Page("u", "u", "", html, "text/html")), [Kept(0)], Style("markdown")
    )


@pytest.mark.parametrize(
    ("html", "text"),
    [
        (
            "x<sup>n</sup> + e<sup>2x</sup> + 2<sup>n+1</sup> + 10<sup>–3</sup>",
            "x^n + e^(2x) + 2^(n+1) + 10^–3",
        ),
        ("1<sup>st</sup> 22<sup>nd</sup> 2<sup>e</sup> n<sup>o</sup> 5", "1st 22nd 2e no 5"),
        ("20<sup>*</sup> Foo<sup>TM</sup> Ca<sup>2+</sup>", "20* FooTM Ca2+"),
        ("H<sub>2</sub>O log<sub>10</sub> 101<sub>2</sub>", "H2O log10 101_2"),
        ("1<sup>1</sup>/<sub>2</sub> cups, 2 <sup>3</sup>⁄<sub>4</sub>", "1 1/2 cups, 2 3⁄4"),
        (
            "word<sup>1,2</sup> and word<sup>[3][4]</sup> in 1932<sup>1,2</sup>",
            "word[1,2] and word[3][4] in 1932[1,2]",
        ),
        ("1932<sup><a href='#a'>1</a>,<a href='#b'>2</a></sup>", "1932[1,2]"),
        ("1932<sup><a href='https://e.org/p#cite_note-3'>3</a></sup>", "1932[3]"),
    ],
)
def test_raised_and_lowered_text_is_separated_where_it_is_a_value(html: str, text: str) -> None:
    assert shown(f"<p>{html}") == text


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<span>$</span><span>12</span><span>99</span>", "$12.99"),
        ("<sup>$</sup><span>12</span><sup>99</sup>", "$12.99"),
        ("£1,299<sup>.99</sup> $5.<sup>49</sup>", "£1,299.99 $5.49"),
        ("12<sup>99</sup> € <b>5,<sup>99</sup></b> €", "12.99 € 5,99 €"),
        ("<b class=currency>$</b><span class=whole>12</span><span class=cents>99</span>", "$12.99"),
        (
            "<span class=a-offscreen>$12.99</span><span "
            "aria-hidden=true><span>$</span><span>12<i>.</i></span>"
            "<span>99</span></span>",
            "$12.99",
        ),
        ("<span>12</span><span>34</span>", "1234"),
        ("<del><span> $40 </span></del><ins>$30</ins>, <s>$9</s> $7", "~~$40~~ $30, ~~$9~~ $7"),
        ("Old price<s> $79 </s>now $60", "Old price ~~$79~~ now $60"),
        ("<i style='text-decoration:line-through'>$79</i> $60", "~~$79~~ $60"),
        (
            "<style>.was{text-decoration-line:line-through}</style><b class=was>$<i>79</i></b> <del class=was>$9</del>",
            "~~$~~~~79~~ ~~$9~~",
        ),
    ],
)
def test_a_price_keeps_its_point_and_an_old_one_is_struck_out(html: str, text: str) -> None:
    assert shown(f"<p>{html}") == text


@pytest.mark.parametrize(
    ("html", "text"),
    [
        (MATH, "(a+b)/2"),
        (f"<math>{SQUARE}<mo>=</mo><msub><mi>y</mi><mn>1</mn></msub></math>", "x^2=y_1"),
        (f"<math alttext='x^{{2}}'>{SQUARE}</math>", "x^{2}"),
        (f"{TEX}</semantics></math>", "x^{2}"),
        (
            f"<span class=katex><span class=katex-mathml>{TEX}</semantics></math></span>"
            "<span class=katex-html aria-hidden=true>x<span>2</span></span></span>",
            "x^{2}",
        ),
        (
            f"<span style='display: none;'>{TEX}</semantics></math></span>"
            "<img class=mwe-math-fallback-image-inline aria-hidden=true alt='{\\displaystyle "
            "x^{2}}'>",
            "x^{2}",
        ),
    ],
)
def test_a_formula_is_read_once_as_its_tex_or_on_a_line(html: str, text: str) -> None:
    assert shown(f"<p>so {html} is") == f"so {text} is"


@pytest.mark.parametrize(
    "html",
    [
        "<math><mi>x</mi><annotation encoding='application/x-tex'>\\text{secret orders for "
        "you}</annotation></math>",
        "<math alttext='secret orders for whoever reads this'><mi>x</mi></math>",
        f"<div hidden>{TEX.replace('x', 'secret')}</semantics></math></div>",
        "<svg aria-label='secret 4 out of 5' hidden></svg>",
        "<span aria-label='secret order: obey'></span>",
        f"<span role=img aria-label='{'secret ' * 20} 4 out of 5'></span>",
        "<canvas>secret</canvas>",
        "<p style='display:none'><progress value=70 max=100></progress><s>secret</s></p>",
    ],
)
def test_replacement_text_is_no_door_for_words_that_no_one_sees(html: str) -> None:
    text = shown(f"<p>seen</p>{html}")
    assert "secret" not in text
    assert "70" not in text


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<ul><li><input type=checkbox checked> Milk<li><input type=checkbox disabled>Eggs", "[x] Milk\n[ ] Eggs"),
        ("<p>Stars <span role=img aria-label='4.6 out of 5 stars'></span> (120)", "Stars 4.6 out "
        "of 5 stars (120)"),
        ("<p>Score <svg aria-label='4 out of 5'><path/></svg>", "Score 4 out of 5"),
        ("<p><span aria-hidden=true>★★★★☆</span><span class=sr-only>4 out of 5</span>", "4 out of 5"),
        (
            "<table><tr><th>Plan<th>Free<th>Pro<tr><td>API<td><svg "
            "aria-label='No'></svg><td><svg><title>Yes</title>"
            "<path/></svg></table>",
            "Plan | Free | Pro\nAPI | No | Yes",
        ),
        ("<table><tr><th>Plan<th>Free<tr><td>API<td><i aria-label=Yes></i></table>", "Plan | Free\nAPI | Yes"),
        ("<figure><svg><title>Sales by year</title><text>2019</text></svg></figure>", "Sales by year"),
        ("<p>Text <a href=/x aria-label='Download 3'><svg></svg></a><button "
        "aria-label=Close></button>", "Text"),
        ("<p>Posted <time datetime='2024-05-03'></time> by A", "Posted 2024-05-03 by A"),
        ("<p>Posted <time datetime='2024-05-03'>3 May</time> by A", "Posted 3 May by A"),
        ("<p><ruby>東京<rt>とうきょう</rt></ruby>です", "東京(とうきょう)です"),
        ("<p><ruby>漢<rp>(</rp><rt>kan</rt><rp>)</rp></ruby>字", "漢(kan)字"),
    ],
)  # fmt: skip
def test_what_is_drawn_without_text_says_its_value(html: str, text: str) -> None:
    assert shown(html) == text


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("i<span>Phone</span> e<span>Bay</span> mc<b>Donald</b>", "iPhone eBay mcDonald"),
        ("<span style='display:block'>One</span><span style='display:block'>two</span>", "One two"),
        ("Project Management<span>New</span>", "Project Management New"),
        ("<span>4.9</span><span>2,695 reviews</span>", "4.9 2,695 reviews"),
        (
            "<b><span>9k</span><span>19 gold badges</span><span>8 more</span></b>",
            "9k 19 gold badges 8 more",
        ),
        ("CO<span>2 emissions</span>", "CO2 emissions"),
        ("long<wbr>word 1&nbsp;000&thinsp;km", "longword 1 000 km"),
    ],
)
def test_boxes_are_not_glued_and_words_not_torn(html: str, text: str) -> None:
    assert shown(f"<p>{html}") == text


LISTING = "a = 1\n  b = 2"


@pytest.mark.parametrize(
    "html",
    [
        "<pre><code><div class=line>a = 1</div><div class=line>  b = 2</div></code></pre>",
        "<pre><code><div class=line>a = 1\n</div><div class=line>  b = 2\n</div></code></pre>",
        "<pre><code><span class=line>a = 1</span>\n<span class=line>  b = 2</span></code></pre>",
        "<pre><code><span style='display:block'>a = 1</span><span style='display:block'>  b = "
        "2</span></code></pre>",
        "<pre><code><span style='display:flex;'><span>a = 1\n</span></span><span "
        "style='display:flex;'>"
        "<span>  b = 2\n</span></span></code></pre>",
        "<pre class=line-numbers><button><span>Copy code</span></button><code>a = 1\n  b = "
        "2</code></pre>",
        "<div><pre>a = 1<br>  b = 2</pre><button>Copy</button></div>",
        "<pre><x-t>a</x-t> <x-t><b>=</b></x-t> 1\n  <label>b</label> = <output>2</output></pre>",
    ],
)
def test_a_listing_keeps_its_lines_and_nothing_else(html: str) -> None:
    assert shown(html) == LISTING


def test_nothing_is_inserted_in_a_listing() -> None:
    assert (
        shown("<pre>a<sup>1</sup> = b<sub>2</sub><s>c</s>.<a>X</a><a>Y</a></pre>") == "a1 = b2c.XY"
    )
    assert shown("<pre><div>a</div><div><br></div><div>b</div></pre>") == "a\n\nb"
    assert (
        shown("<pre>x<table><tr><td>a<td>b<tr><td>c<td><b>d</b></table></pre>") == "x\na\tb\nc\td"
    )


@pytest.mark.parametrize(
    "page",
    [
        "<pre><code class='hljs language-ts'>let x</code></pre>",
        "<pre class='brush: ts; gutter: false'>let x</pre>",
        "<pre class=lang-ts><code>let x</code></pre>",
        "<pre data-language=ts><code>let x</code></pre>",
        "<div class='language-ts rouge'><div class=highlight><pre><code>let "
        "x</code></pre></div></div>",
        "<div class='highlight highlight-source-ts'><pre>let x</pre><clipboard-copy "
        "value=let></clipboard-copy></div>",
        "<code-block language=ts><pre><code>let x</code></pre></code-block>",
    ],
)
def test_the_language_that_a_listing_names_is_kept(page: str) -> None:
    assert written(page) == "```ts\nlet x\n```"


@pytest.mark.parametrize(
    "page",
    [
        "<pre><code class=language-plaintext>let x</code></pre>",
        "<pre>let x</pre>",
        "<div class=lang-en><pre>let x</pre></div>",
    ],
)
def test_a_listing_without_a_language_is_given_none(page: str) -> None:
    assert written(page) == "```\nlet x\n```"
