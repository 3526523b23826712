"""Small pages of today's shapes with the text that a person sees, once all that opens is open.

Marks that plain text needs (`^`, `|`, `~~`, `[x]`) are ours.
"""

from typing import Final

PAGES: Final[dict[str, tuple[str, str]]] = {
    # Boxes side by side
    "links of a menu": (
        "<nav><a href=a>One</a><a href=b>Two</a><a href=c>Three</a></nav>",
        "One Two Three",
    ),
    "buttons side by side": (
        "<div><button>Create account</button><button>Sign in</button></div>",
        "Create account Sign in",
    ),
    "flex items": (
        "<style>.r{display:flex}</style><div class=r><span>Reputation</span><span>143k</span>"
        "<span>19 silver badges</span></div>",
        "Reputation 143k 19 silver badges",
    ),
    "grid of divs": (
        "<div style='display:grid'><div>Price</div><div>12 EUR</div></div>",
        "Price\n12 EUR",
    ),
    "ends of a scale": (
        "<p><span>Very poor</span><span>OK</span><span>Excellent</span>",
        "Very poor OK Excellent",
    ),
    "a word in three elements": (
        "<p>un<b>believ</b><i>able</i> H<sub>2</sub>O",
        "unbelievable H2O",
    ),
    "tags as links": (
        "<p>Tags: <a>python</a><a>asyncio</a><a>rust</a>",
        "Tags: python asyncio rust",
    ),
    "line breaks in a heading": ("<h1>Annual<br>report</h1><p>Text.", "Annual report\nText."),
    "badges after a name": (
        "<p><span>Ada Lovelace</span><span>Moderator</span><time>3 May</time>",
        "Ada Lovelace Moderator 3 May",
    ),
    "numbers on a flex line": (
        "<div style='display:flex'><span>12</span><b>34</b><a href=x>56</a></div>",
        "12 34 56",
    ),
    "years on a flex line by a sheet": (
        "<style>.row{display:flex}</style><div class=row><span>2023</span><span>2024</span></div>",
        "2023 2024",
    ),
    "words of an item of a flex line": (
        "<div style='display:flex'><span>un<i>even</i></span><span>1<b>2</b></span></div>",
        "uneven 12",
    ),
    "names and values in a grid": (
        "<style>.g{display:grid}</style>"
        "<div class=g><label>from</label><span>12</span><em>to</em><span>30</span></div>",
        "from 12 to 30",
    ),
    "a number over its label": (
        "<style>.s strong{display:block}</style><p class=s><strong>42</strong>members</p>",
        "42 members",
    ),
    "numbers that meet in a formula": ("<p>at <math><mn>12</mn><mn>34</mn></math></p>", "at 12 34"),
    "a listing whose lines a sheet makes": (
        "<style>.l{display:block}</style><pre><span class=l>a = 1</span><span class=l>2 + "
        "a</span></pre>",
        "a = 1\n2 + a",
    ),
    "numbers under a range of widths": (
        "<style>@media (400px <= width <= 2000px){.b{display:block}}</style>"
        "<p><span class=b>12</span><span class=b>34</span></p>",
        "12 34",
    ),
    "a sheet in a comment of HTML": (
        "<style><!-- .gone{display:none} --></style><p>Lit<span class=gone> never</span></p>",
        "Lit",
    ),
    "a number at the right": (
        "<p><span>total</span><span style='float:right'>34</span></p>",
        "total 34",
    ),
    "a number that lies over another": (
        "<div style='position:relative'><span "
        "style='position:absolute'>12</span><span>34</span></div>",
        "12 34",
    ),
    "a number at the right by a sheet": (
        "<style>.r{float:right}</style><p>total<span class=r>3</span><span class=r>4</span></p>",
        "total 3 4",
    ),
    "a number that a sheet moves over another": (
        "<style>.b{position:absolute;top:0}</style><div>12<span class=b>34</span></div>",
        "12 34",
    ),
    "numbers on both sides of an empty block": (
        "<div>4<div></div>17</div><div>5<p> </p>18</div><div>6<div><p></p></div>19</div>",
        "4 17\n5 18\n6 19",
    ),
    "a rating and a count": (
        "<p><span>4.6</span> <span>stars</span>, <span>4.6</span><span>120</span></p>",
        "4.6 stars, 4.6 120",
    ),
    "a drawing's title": (
        "<p>Map</p><svg role=img><title>The river at high water</title></svg>",
        "Map\nThe river at high water",
    ),
    "a number broken for colour": ("<p>Order 12<mark>34</mark>56</p>", "Order 123456"),
    "a number in digits": (
        "<p><span>1</span><span>2</span><span>3</span> visitors</p>",
        "123 visitors",
    ),
    "thousands in elements": (
        "<p>Total <span>1</span><span>,</span><span>234</span> rows</p>",
        "Total 1,234 rows",
    ),
    "a number that may break": (
        "<p>Call 1234<wbr>5678 or Donau&shy;dampf</p>",
        "Call 12345678 or Donaudampf",
    ),
    # What opens
    "accordion": (
        "<h3><button aria-expanded=false aria-controls=a1>Do you ship?</button></h3><div id=a1 "
        "hidden>"
        "<p>Yes, in two days.</div>",
        "Do you ship?\nYes, in two days.",
    ),
    "details": (
        "<details><summary>Warranty</summary><p>Five years.</details>",
        "Warranty\nFive years.",
    ),
    "tab panels": (
        "<div role=tablist><button role=tab aria-controls=t1>Size</button><button role=tab "
        "aria-controls=t2>Care"
        "</button></div>"
        "<div role=tabpanel id=t1>38 cm</div><div role=tabpanel id=t2 style='display:none'>Wash "
        "cold</div>",
        "Size Care\n38 cm\nWash cold",
    ),
    "collapse by data attributes": (
        "<a data-bs-toggle=collapse href='#c1'>More</a>"
        "<div class=collapse id=c1 style='display:none'>It weighs 3 kg.</div>",
        "More\nIt weighs 3 kg.",
    ),
    "a card's second link": (
        "<h2><a href=x>Adapter is gone</a></h2><p>"
        "<a href=x aria-hidden=true tabindex=-1>It was sold for eight years.</a></p>",
        "Adapter is gone\nIt was sold for eight years.",
    ),
    "waiting for its animation": (
        "<p>Start.</p><div style='opacity:0;transform:translateY(20px)'><p>We plant trees in 14 "
        "towns.</p></div>",
        "Start.\nWe plant trees in 14 towns.",
    ),
    "streamed by React": (
        "<main><!--$?--><template id='B:0'></template><p>Loading</p><!--/$--></main>"
        '<div hidden id=\'S:0\'><p>The result is 42.</p></div><script>$RC("B:0","S:0")</script>',
        "The result is 42.",
    ),
    "shadow root": (
        "<x-card><template shadowrootmode=open><h2>Card</h2><slot></slot></template><p>Its "
        "text.</p></x-card>",
        "Card\nIts text.",
    ),
    # Values
    "powers": ("<p>10<sup>6</sup> m<sup>2</sup> and x<sup>n+1</sup>", "10^6 m^2 and x^(n+1)"),
    "notes": (
        "<p>In 1932<sup><a href='#n2'>[2]</a></sup> it fell<sup><a href='#n3'>3</a></sup>.",
        "In 1932[2] it fell[3].",
    ),
    "raised cents": ("<p>Now <b>$129<sup>00</sup></b> each", "Now $129.00 each"),
    "a price in pieces": (
        "<div class=price><span>$</span><span>1,299</span><span class=price-cents>95</span></div>",
        "$1,299.95",
    ),
    "old and new price": ("<p><del>$20.00</del> <ins>$15.00</ins>", "~~$20.00~~ $15.00"),
    "inserted words": (
        "<p>Open on <del>Monday</del><ins>Tuesday</ins>.",
        "Open on ~~Monday~~ Tuesday.",
    ),
    "ruby": ("<p><ruby>東京<rt>とうきょう</rt></ruby>に行く", "東京(とうきょう)に行く"),
    "ruby with brackets": ("<p><ruby>漢<rp>(</rp><rt>kan</rt><rp>)</rp></ruby>字", "漢(kan)字"),
    "a formula": (
        "<p>so <math><msup><mi>x</mi><mn>2</mn></msup><mo>+</mo><mn>1</mn></math> is",
        "so x^2+1 is",
    ),
    "tasks": (
        "<ul><li><input type=checkbox checked disabled> Paint</li><li><input type=checkbox "
        "disabled> Sand</li></ul>",
        "[x] Paint\n[ ] Sand",
    ),
    "time without text": (
        "<p>Published <time datetime='2026-03-05'></time></p>",
        "Published 2026-03-05",
    ),
    "time": (
        "<p>Seen <time datetime='2026-03-05T10:00'>two days ago</time></p>",
        "Seen two days ago",
    ),
    "stars": (
        "<p>Our rating <span role=img aria-label='4.6 out of 5'></span></p>",
        "Our rating 4.6 out of 5",
    ),
    "a counted rating": (
        "<a><span>4.9</span><span class=bar></span><span>2,695 reviews</span></a>",
        "4.9 2,695 reviews",
    ),
    "an abbreviation": (
        "<p>The <abbr title='World Health Organization'>WHO</abbr> says no.",
        "The WHO says no.",
    ),
    "a counter": ("<p><number-counter>4</number-counter>mins", "4 mins"),
    "a title of a drawing": (
        "<figure><svg><title>Sales by month in 2025</title><path d='M0 "
        "0'/></svg><figcaption>Sales</figcaption>"
        "</figure>",
        "Sales by month in 2025\nSales",
    ),
    "an image": (
        "<p>See <img src=x alt='Rainfall rose by a third in ten years'></p>",
        "See\nRainfall rose by a third in ten years",
    ),
    "a drawing that needs a script": (
        "<p>Rain</p><canvas>March 20 mm, April 31 mm</canvas>",
        "Rain",
    ),
    # Tables
    "a table": (
        "<table><tr><th>Peak<th>Height<tr><td>K2<td>8611 m<tr><td>Everest<td>8849 m</table>",
        "Peak | Height\nK2 | 8611 m\nEverest | 8849 m",
    ),
    "a table by roles": (
        "<div role=table><div role=row><span role=columnheader>Peak</span><span "
        "role=columnheader>Height</span></div>"
        "<div role=row><span role=cell>K2</span><span role=cell>8611 m</span></div></div>",
        "Peak Height\nK2 8611 m",
    ),
    "marks in cells": (
        "<table><tr><th>Plan<th>Chat<th>Calls<tr><td>Free<td><svg aria-label=Included></svg><td>No"
        "<tr><td>Pro<td>Yes<td><img alt=Yes src=x></table>",
        "Plan | Chat | Calls\nFree | Included | No\nPro | Yes | Yes",
    ),
    "a table without a head": (
        "<table><tr><td>Length<td>4.2 m<tr><td>Width<td>1.8 m</table>",
        "Length | 4.2 m\nWidth | 1.8 m",
    ),
    "definitions": ("<dl><dt>Weight<dd>3 kg<dt>Colour<dd>Red</dl>", "Weight: 3 kg\nColour: Red"),
    "plans with headings": (
        "<table><tr><td><h3>Basic</h3><p>$9</p><td><h3>Pro</h3><p>$19</p><tr><td>1 user<td>5 "
        "users</table>",
        "Basic $9 | Pro $19\n1 user | 5 users",
    ),
    "a cart": (
        "<table><tr><td>Pen<td>4 EUR<td><form><button>Buy</button></form>"
        "<tr><td>Ink<td>6 EUR<td><form><button>Buy</button></form></table>",
        "Pen | 4 EUR | Buy\nInk | 6 EUR | Buy",
    ),
    "rows that are links": (
        "<div role=table><div role=rowgroup><a role=row href=x><b role=cell>Reds</b><b "
        "role=cell>31</b></a>"
        "<a role=row href=y><b role=cell>Blues</b><b role=cell>28</b></a></div></div>",
        "Reds 31\nBlues 28",
    ),
    "rows and cells in wrappers": (
        "<div role=table><div class=body>"
        "<div role=row><div class=w><p role=cell>Reds</p><p role=cell>31</p></div></div>"
        "<div role=row><p role=cell>Blues</p><p role=cell>28</p></div></div></div>",
        "Reds 31\nBlues 28",
    ),
    "a list with the roles of a table": (
        "<ul role=table><li role=row><span role=cell>Reds</span><span "
        "role=cell>31</span></li></ul>",
        "Reds 31",
    ),
    "text beside the rows of roles": (
        "<div role=table>All teams<div role=row><i role=cell>Reds</i><i role=cell>31</i></div>"
        "<div role=row><i role=cell>Blues</i><i role=cell>28</i></div></div>",
        "All teams\nReds 31\nBlues 28",
    ),
    "a header over two columns": (
        "<table><thead><tr><th rowspan=2>City<th colspan=2>Temp<tr><th>Min<th>Max</thead>"
        "<tr><td>Rome<td>4<td>31</table>",
        "City | Temp\nMin | Max\nRome | 4 | 31",
    ),
    "a hidden column": (
        "<style>.h{display:none}</style><table><tr><th>A<th class=h>Id<th>B<tr><td>1<td "
        "class=h>999<td>2</table>",
        "A | B\n1 | 2",
    ),
    # Code
    "a listing by spans": (
        "<pre><code><span class=line>def f():</span>\n<span class=line>    return "
        "1</span></code></pre>",
        "def f():\n    return 1",
    ),
    "a listing by divs": (
        "<pre><div class=line>if a:</div><div class=line>  b()</div></pre>",
        "if a:\n  b()",
    ),
    "a listing in coloured elements": (
        "<pre><code><my-token>foo</my-token>&lt;<my-token>T</my-token>&gt;(a)</code></pre>",
        "foo<T>(a)",
    ),
    "a listing with a button": (
        "<div class=highlight><pre><button>Copy</button>  x = 1\n  y = 2</pre></div>",
        "  x = 1\n  y = 2",
    ),
    "a diff": (
        "<pre><code class=language-diff>- old line\n+ new line</code></pre>",
        "- old line\n+ new line",
    ),
    "a console": ("<pre>$ make test\n12 passed in 3.1s</pre>", "$ make test\n12 passed in 3.1s"),
    "typed code": (
        "<p>Call <code>f(a, b)</code> and <kbd>Ctrl</kbd>+<kbd>C</kbd>.",
        "Call f(a, b) and Ctrl+C.",
    ),
}
