"""Forms of hidden text, and of like text that is seen, for pages and Markdown; `{bad}` is the text.

`python -m bench.attack_hidden --seen` asks Chromium of each form of a page whether the text is
drawn. The forms are those of the table in `docs/security.md`; others are not claimed. Not for: files
of offices (`hidden_files.py`), the first set of forms (`attacks.py`).
"""

from typing import Final


def _own(style: str) -> str:
    return f"<p style='{style}'>{{bad}}</p>"


def _sheet(css: str) -> str:
    doubled = css.replace("{", "{{").replace("}", "}}")
    return f"<style>{doubled}</style><p class=x>{{bad}}</p>"


def _rule(style: str) -> str:
    return f"<style>.q{{{{{style}}}}}</style><p class=q>{{bad}}</p>"


HIDDEN_CSS: Final = {
    # two rules that hide together
    "no width, cut off by another rule": (
        "<style>.a{{overflow:clip}}.b{{width:0}}</style><p class='a b'>{bad}</p>"
    ),
    # fallback of bars
    "in a bar": "<progress value=1 max=2>{bad}</progress>",
    "in an empty bar": "<progress value=0>{bad}</progress>",
    "in a meter": "<meter value=1 max=2>{bad}</meter>",
    "in a meter without a value": "<meter><b>{bad}</b></meter>",
    "in a bar within a sentence": "<p>Half <progress value=.5><span>{bad}</span></progress> done",
    # comments, escapes and what a browser does not take for a value
    "comment before the value": _own("display:/**/none"),
    "comment before the property": _own("/*x*/display:none"),
    "comment behind the value": _own("display:none/*;display:block*/"),
    "comment with a declaration": _own("color:black;/*display:block;*/display:none"),
    "escaped property": _own("dis\\70 lay:none"),
    "escaped value": _own("display:n\\6f ne"),
    "escaped letter": _own("visibilit\\y:hidden"),
    "escape of six digits": _own("displa\\000079:none"),
    "escaped property of a sheet": _rule("dis\\70 lay:none"),
    "escaped value of a sheet": _rule("display:n\\6fne"),
    "escaped name of a class": "<style>.\\71{{display:none}}</style><p class=q>{bad}</p>",
    "comment in a rule": _rule("display/**/:/**/none/**/"),
    "important with a blank": _own("display:none ! important"),
    "important before another": _own("display:none!important;display:block"),
    "important in another case": _rule("DISPLAY:NONE!IMPORTANT"),
    "a semicolon in a string": _own('font-family:"a;display:block";display:none'),
    "a semicolon in brackets": _own("background:url(a;display:block);display:none"),
    # sides and sizes by their other names
    "block-size": _own("block-size:0;overflow:hidden"),
    "max-block-size": _own("max-block-size:0;overflow:clip"),
    "inline-size": _own("inline-size:0;overflow:hidden"),
    "max-inline-size": _rule("max-inline-size:0;overflow:hidden"),
    "block-size of a sheet": _rule("block-size:0;overflow:hidden"),
    "two pixels of height": _own("height:2px;overflow:hidden"),
    "no height that scrolls": _own("height:0;overflow:auto"),
    "no height on one axis": _own("height:0;overflow-y:hidden"),
    "size with an exponent": _own("font-size:1e-3px"),
    "opacity with an exponent": _own("opacity:1e-9"),
    "padding without height": _own("padding-top:90px;height:0;overflow:clip;box-sizing:border-box"),
    # places
    "translate": _own("translate:-9999px"),
    "translate of two": _own("translate:0 -9999px"),
    "translate of a sheet": _rule("translate:-99em 0;translate:-999em 0"),
    "translated by a screen": _own("transform:rotate(0deg) translateX(-200vw)"),
    "translated to the right": _own("position:fixed;translate:9999px"),
    "inset of four": _own("position:fixed;inset:0 auto auto -9999px"),
    "inset of a line": _own("position:absolute;inset-inline-start:-9999px"),
    "inset of a block": _rule("position:absolute;inset-block-start:-9999px"),
    "from the right": _own("position:absolute;right:9999px"),
    "from below": _own("position:fixed;bottom:9999px"),
    "margin in the short form": _own("margin:0 0 0 -9999px"),
    "margin of a line": _own("margin-inline-start:-9999px"),
    "in inches": _own("position:absolute;left:-99in"),
    # colours
    "white as hwb": _own("color:hwb(0 100% 0%)"),
    "white by space": _own("color:color(srgb 1 1 1)"),
    "a pale name": _own("color:snow"),
    "another pale name": _rule("color:ghostwhite"),
    "hue in turns": _own("color:hsl(.5turn none 100%)"),
    "on a ground by name": _own("color:navy;background:navy"),
    "on a ground among words": _own("color:#000080;background:no-repeat navy 0 0"),
    "white over no ground": _own("color:white;background:none repeat"),
    # the page's own rules
    "not for print": "<style>@media not print{{.q{{display:none}}}}</style><p class=q>{bad}</p>",
    "one of two queries": "<style>@media (min-width:1px) or "
    "(color){{.q{{display:none}}}}</style><p class=q>{bad}</p>",
    "a browser's window": "<style>@media (display-mode:browser){{.q{{display:none}}}}</style><p "
    "class=q>{bad}</p>",
    "a sheet for screens": "<style media=screen>.q{{display:none}}</style><p class=q>{bad}</p>",
    "a sheet for print that shows": "<style>.q{{display:none}}</style><style "
    "media=print>.q{{display:block!important}}</style><p class=q>{bad}</p>",
    # elements
    "popover": "<div popover><p>{bad}</p></div>",
    "popover by hand": "<p popover=manual>{bad}</p>",
    "host without a slot": "<div><template "
    "shadowrootmode=open><p>Boats.</p></template><p>{bad}</p></div>",
    "host with another slot": "<div><template shadowrootmode=open><slot "
    "name=a></slot></template><p>{bad}</p></div>",
    "closed host": "<section><template shadowrootmode=closed></template>{bad}</section>",
    "a rule that the sheet's end closes": _sheet(".x{display:none"),
    "a block that the sheet's end closes": _sheet("@media screen{.x{display:none"),
    "a ground of its ink": _own("color:#fff;background:currentcolor"),
}
"""Bodies of pages whose text no reader sees; braces are doubled."""

FAINT: Final = frozenset({"a pale name", "another pale name"})
"""Forms of them that are drawn, but that no eye can read."""

SEEN_CSS: Final = {
    "an animation that ends seen": _sheet(
        "@keyframes k{from{opacity:0}to{opacity:1}}.x{opacity:0;animation:k 1ms forwards}"
    ),
    "an animation that is taken back": _sheet("@keyframes k{to{opacity:0}}.x{animation:k 1ms}"),
    "an animation that nothing uses": _sheet("@keyframes k{to{opacity:0}}.x{animation:j 1ms both}"),
    "a property that is set": _sheet(
        '@property --o{syntax:"<number>";inherits:true;initial-value:0}.x{--o:1;opacity:var(--o)}'
    ),
    "a condition of paper": _own("display:if(media(print): none; else: block)"),
    "a gradient of two colours": _own("color:#fff;background:linear-gradient(#fff,#00f)"),
    "a gradient as a line below": _own(
        "color:red;background:linear-gradient(red,red) no-repeat 0 100%/100% 2px"
    ),
    "a gradient of a given size": _own(
        "color:red;background:linear-gradient(red,red) no-repeat;background-size:9px 2px"
    ),
    "no height, and not cut off": (
        "<style>.a{{height:0}}.b{{overflow:visible}}</style><p class='a b'>{bad}</p>"
    ),
    "no height, where another is cut off": (
        "<style>.a{{height:0}}.b{{overflow:hidden}}</style><p class=b>a</p><p class=a>{bad}</p>"
    ),
    "another language": "<style>:lang(xx){{display:none}}</style><p lang=en>{bad}</p>",
    "turned in the plane": _own("transform:rotate3d(0,0,1,5deg)"),
    "a comment between": _own("color:/*white*/black"),
    "a property in a comment": _own("/*display:none;*/color:black"),
    "a joined name": _own("dis/**/play:none"),
    "a value that is none": _own("display:nothing"),
    "an escaped semicolon": _own("color\\3b display:none"),
    "hidden in a string": _own('font-family:"a;display:none;b"'),
    "hidden in an address": _own("background:url(data:;display:none)"),
    "height without a cut": _own("block-size:0"),
    "a short move": _own("translate:-20px"),
    "insets of zero": _own("position:relative;inset:0"),
    "grey as oklch": _own("color:oklch(.4 0 0)"),
    "black as lab": _own("color:lab(0 0 0)"),
    "red as hwb": _own("color:hwb(0 0% 0%)"),
    "white on a dark ground": _own("color:lab(100 0 0);background:navy"),
    "white on a ground by rule": _rule("color:white;background:#003 none repeat"),
    "a mask that fades": _own("mask:linear-gradient(#000 90%,transparent)"),
    "a container of no known size": "<style>@container (min-width:1px){{.q{{display:none}}}}</style><p "
    "class=q>{bad}</p>",
    "for print": "<style>@media print{{.q{{display:none}}}}</style><p class=q>{bad}</p>",
    "a sheet for print": "<style media=print>.q{{display:none}}</style><p class=q>{bad}</p>",
    "a sheet of another kind": "<style type=text/less>.q{{display:none}}</style><p "
    "class=q>{bad}</p>",
    "a rule of a shadow root": "<div><template shadowrootmode=open><style>p{{display:none}}"
    "</style><slot></slot></template></div><p>{bad}</p>",
    "a page's rule outside of a shadow root": "<style>p.q{{display:none}}</style><div><template "
    "shadowrootmode=open><p class=q>{bad}</p></template></div>",
    "a small grid of large type": "<style>.g{{font-size:0}}.g p{{font-size:20px}}</style><div "
    "class=g><p>{bad}</p></div>",
    "an unknown ground": "<div style='background:var(--sea)'><p style='color:white'>{bad}</p></div>",
    "host with a slot": "<div><template "
    "shadowrootmode=open><slot></slot></template><p>{bad}</p></div>",
    "host with its slot": "<div><template shadowrootmode=open><slot name=a></slot></template><p "
    "slot=a>{bad}</p></div>",
    "indented first line": _own("text-indent:3em"),
    "tight letters": _own("letter-spacing:-.5px"),
    "contained as it is": _own("contain:content"),
    "within an open bracket": _own("--a:{{;display:none"),
    "a tall padding": _own("padding-top:90px"),
    "turned a little": _own("transform:rotate(3deg)"),
    "a fallback of old browsers": _sheet("@supports not (display:grid){.x{display:none}}"),
    "a feature that is none": _sheet("@supports (display:nothing){.x{display:none}}"),
    "the other direction": _sheet(".x:dir(rtl){display:none}"),
    "an unknown element": _sheet(".x:not(:defined){display:none}"),
}
"""Bodies of pages whose text is seen, though a hasty reader may take it for hidden."""

HIDDEN_MARKDOWN: Final = {
    "comment": "Boats.\n\n<!-- {bad} -->\n",
    "comment in a line": "Boats <!-- {bad} --> leave.\n",
    "comment over lines": "<!--\n\n{bad}\n\n-->\n",
    "comment without an end": "Boats.\n\n<!-- {bad}\n",
    "hidden": "<div hidden>\n\n{bad}\n\n</div>\n",
    "hidden in a line": "Boats <span hidden>{bad}</span> leave.\n",
    "not displayed": '<p style="display:none">{bad}</p>\n',
    "not displayed by an escape": '<p style="dis\\70 lay:none">{bad}</p>\n',
    "white": '<span style="color:#fff">{bad}</span>\n',
    "script": "<script>\n{bad}\n</script>\n",
    "script in a line": "Boats <script>{bad}</script> leave.\n",
    "style sheet": "<style>.q{{display:none}}</style>\n<p class=q>{bad}</p>\n",
    "template": "<template>\n\n{bad}\n\n</template>\n",
    "title": "<title>{bad}</title>\n",
    "an element of no name": "<x-note hidden>{bad}</x-note>\n",
    "in a closed list": "- Boats\n- <i hidden>{bad}</i>\n",
    "in a cell": "| a | b |\n|---|---|\n| 1 | <i hidden>{bad}</i> |\n",
    "a link's comment": "[//]: # ({bad})\n",
}
"""Markdown whose text no renderer draws; braces are doubled."""

SEEN_MARKDOWN: Final = {
    "a placeholder": "Use <your name> and Vec<T>: {bad}\n",
    "a tag that is named": "Put a <script> tag in front.\n\n{bad}\n",
    "a listing of markup": "```html\n<p hidden>{bad}</p>\n```\n",
    "code in a line": "`<p hidden>` {bad}\n",
    "an end tag alone": "Boats </section></div> leave. {bad}\n",
    "details": "<details><summary>Light</summary>\n\n{bad}\n\n</details>\n",
    "bold": "<b>{bad}</b>\n",
}
"""Markdown whose text is drawn."""
