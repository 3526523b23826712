"""Forms of hidden text, and of like text that is seen, for pages and Markdown; `{bad}` is the text.

`python -m bench.attack_hidden --seen` asks Chromium of each form of a page whether the text is
drawn. Not for: files of offices (`hidden_files.py`), the first set of forms (`attacks.py`).
"""

from base64 import b64encode
from typing import Final
from urllib.parse import quote

_SHEET: Final = "data:text/css,.q%7Bdisplay:none%7D"
_BASE: Final = "data:text/css;base64," + b64encode(b".q{display:none}").decode()
_NARROW: Final = "<div style='width:300px'>"


def _own(style: str) -> str:
    return f"<p style='{style}'>{{bad}}</p>"


def _sheet(css: str) -> str:
    doubled = css.replace("{", "{{").replace("}", "}}")
    return f"<style>{doubled}</style><p class=x>{{bad}}</p>"


def _rule(style: str) -> str:
    return f"<style>.q{{{{{style}}}}}</style><p class=q>{{bad}}</p>"


HIDDEN_CSS: Final = {
    # what a sheet defines for the whole page
    "an animation that ends clear": _sheet(
        "@keyframes k{to{opacity:0}}.x{animation:k 0s forwards}"
    ),
    "an animation of four properties": _sheet(
        "@keyframes k{to{font-size:0}}"
        ".x{animation-name:k;animation-duration:1ms;animation-fill-mode:both}"
    ),
    "an animation that ends in the ground's colour": _sheet(
        "@keyframes k{to{color:#fff}}.x{animation:k 1ms forwards}"
    ),
    "an animation that ends off the screen": _sheet(
        "@keyframes k{99%{opacity:1}100%{transform:translateX(-9999px)}}.x{animation:1ms k both}"
    ),
    "an animation of one's own": "<style>@-webkit-keyframes k{{to{{display:none}}}}</style>"
    + _own("animation:k 1ms forwards"),
    "a property that begins with nothing": _sheet(
        '@property --h{syntax:"<length>";inherits:false;initial-value:0px}.x{font-size:var(--h)}'
    ),
    "a property that begins white": _sheet(
        '@property --c{syntax:"<color>";inherits:true;initial-value:white}.x{color:var(--c)}'
    ),
    "a property of any kind": _sheet(
        '@property --d{syntax:"*";inherits:true;initial-value:none}.x{display:var(--d)}'
    ),
    "a property that begins clear": "<style>@property --o{{syntax:'<number>';inherits:true;"
    "initial-value:0}}</style>" + _own("opacity:var(--o)"),
    "a property in capitals": _sheet(
        '@PROPERTY --o{syntax:"<number>";inherits:true;initial-value:0}.x{opacity:var(--o)}'
    ),
    "a condition of the screen": _sheet(".x{display:if(media(width > 1px): none; else: block)}"),
    "a condition of support": _sheet(".x{opacity:if(supports(color:red): 0; else: 1)}"),
    "a condition that does not hold": _own("display:if(media(print): block; else: none)"),
    "a condition within a size": _own("font-size:if(media(width > 9px): 0px; else: 16px)"),
    "a condition of two branches": _sheet(
        ".x{display:if(media(print): block; media(height > 9px): none; else: block)}"
    ),
    # grounds of the ink's colour
    "an even gradient": _own("color:#fff;background:linear-gradient(#fff,#fff)"),
    "an even gradient as an image": _own(
        "color:black;background-image:linear-gradient(90deg,#000 0%,#000 100%)"
    ),
    "an even radial gradient": _own("color:red;background:radial-gradient(circle,red,red)"),
    "an even conic gradient": _own("color:blue;background:conic-gradient(blue,blue)"),
    "an even gradient below a clear colour": _own(
        "color:#00f;background-color:transparent;"
        "background-image:linear-gradient(to right,#00f,#00f)"
    ),
    # two rules that hide together
    "no height, cut off by another rule": (
        "<style>.a{{height:0}}.b{{overflow:hidden}}</style><p class='a b'>{bad}</p>"
    ),
    "no width, cut off by another rule": (
        "<style>.a{{overflow:clip}}.b{{width:0}}</style><p class='a b'>{bad}</p>"
    ),
    "no height of its own, cut off by a rule": (
        "<style>.b{{overflow:hidden}}</style><p class=b style='height:0'>{bad}</p>"
    ),
    "no height of a box, cut off by another rule": (
        "<style>.b{{overflow:hidden}}.a{{max-height:0}}</style><div class='a b'><p>{bad}</p></div>"
    ),
    "flat lines, cut off by another rule": (
        "<style>.b{{overflow:hidden}}.a{{line-height:0}}</style><p class='a b'>{bad}</p>"
    ),
    # turned, and elsewhere
    "turned about an axis": _own("transform:rotate3d(0,1,0,90deg)"),
    "slanted flat": _own("transform:skewX(90deg)"),
    "a matrix of nothing": _own("transform:matrix3d(0,0,0,0,0,0,0,0,0,0,1,0,0,0,0,1)"),
    "a clip path that goes nowhere": _own('clip-path:path("M0 0")'),
    "fixed below the screen": _own("position:fixed;top:200vh"),
    "by its language": "<style>:lang(xx){{display:none}}</style><p lang=xx>{bad}</p>",
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
    "a value that is none behind": _own("display:none;display:shown"),
    "a colour that is none behind": _own("color:white;color:notacolour"),
    "a size that is none behind": _own("font-size:0;font-size:huge"),
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
    "height of the smaller": _own("height:min(0px,9em);overflow:hidden"),
    "size of the smaller": _rule("font-size:min(0px,9px)"),
    "size held between": _own("font-size:clamp(0px,0px,9px)"),
    "size with an exponent": _own("font-size:1e-3px"),
    "opacity with an exponent": _own("opacity:1e-9"),
    "lines without height": _own("line-height:0;overflow:hidden"),
    "contained without a size": _own("contain:strict"),
    "contained and painted": _rule("contain:size paint"),
    "padding that fills": _own(
        "box-sizing:border-box;height:40px;padding-top:80px;overflow:hidden"
    ),
    "padding without height": _own("padding-top:90px;height:0;overflow:clip;box-sizing:border-box"),
    "letters over one another": _own("letter-spacing:-99px"),
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
    "indented behind the edge": _own("text-indent:200%;white-space:nowrap;overflow:hidden"),
    "indented by pixels": _own("text-indent:9999px;white-space:nowrap;overflow:hidden"),
    "turned on edge": _own("transform:rotateX(90deg)"),
    "turned on edge by its property": _own("rotate:y 90deg"),
    # masks and clips
    "mask": _own("mask:linear-gradient(transparent,transparent)"),
    "mask image": _own("mask-image:linear-gradient(#0000,#0000)"),
    "mask of old": _own("-webkit-mask-image:linear-gradient(rgba(0,0,0,0),rgb(0 0 0/0))"),
    "mask of a sheet": _rule("mask:radial-gradient(#fff0,#fff0)"),
    "clipped to an ellipse": _own("clip-path:ellipse(0 0)"),
    "clipped to a point": _own("clip-path:polygon(0 0,0 0,0 0)"),
    "clipped far in": _own("clip-path:inset(2000px)"),
    "an image in its place": _own("content:url(data:image/gif;base64,R0lGODlhAQABAAAAACw=)"),
    # colours
    "white as lab": _own("color:lab(100% 0 0)"),
    "white as lch": _own("color:lch(100 0 0)"),
    "white as oklab": _own("color:oklab(1 0 0)"),
    "white as oklch": _own("color:oklch(100% 0 0)"),
    "white as hwb": _own("color:hwb(0 100% 0%)"),
    "white by space": _own("color:color(srgb 1 1 1)"),
    "white in a wide space": _own("color:color(display-p3 1 1 1)"),
    "white in linear light": _rule("color:color(srgb-linear 1 1 1)"),
    "white by xyz": _own("color:color(xyz .9505 1 1.089)"),
    "a mixture": _own("color:color-mix(in srgb,white 99%,black)"),
    "light or dark": _own("color:light-dark(white,black)"),
    "from another": _own("color:rgb(from white r g b)"),
    "a pale name": _own("color:snow"),
    "another pale name": _rule("color:ghostwhite"),
    "the ground of the system": _own("color:canvas"),
    "hue in turns": _own("color:hsl(.5turn none 100%)"),
    "clear by oklch": _own("color:oklch(0 0 0/0)"),
    "on a ground by name": _own("color:navy;background:navy"),
    "on a ground among words": _own("color:#000080;background:no-repeat navy 0 0"),
    "white over no ground": _own("color:white;background:none repeat"),
    # the page's own rules
    "container": "<style>.c{{container-type:inline-size}}@container "
    "(min-width:1px){{.q{{display:none}}}}</style><div class=c><p class=q>{bad}</p></div>",
    "named container": "<style>.c{{container:box/inline-size}}@container box "
    "(width>0px){{.q{{display:none}}}}</style><div class=c><p class=q>{bad}</p></div>",
    "container by style": "<style>.c{{--x:1}}@container "
    "style(--x:1){{.q{{display:none}}}}</style><div class=c><p class=q>{bad}</p></div>",
    "imported": f"<style>@import url({_SHEET});</style><p class=q>{{bad}}</p>",
    "imported as a string": f'<style>@import "{_SHEET}";</style><p class=q>{{bad}}</p>',
    "linked": f'<link rel=stylesheet href="{_SHEET}"><p class=q>{{bad}}</p>',
    "linked as base64": f'<link rel=stylesheet href="{_BASE}"><p class=q>{{bad}}</p>',
    "imported by a linked one": f"<link rel=stylesheet "
    f'href="data:text/css,{quote(f"@import url({_SHEET});")}"><p class=q>{{bad}}</p>',
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
    "host that hides itself": "<div><template "
    "shadowrootmode=open><style>:host{{display:none}}</style><slot></slot></template><p>{bad}</p></div>",
    "host that hides what is in it": "<div><template "
    "shadowrootmode=open><style>::slotted(*){{display:none}}</style><slot></slot></template><p>{bad}</p></div>",
    "closed host": "<section><template shadowrootmode=closed></template>{bad}</section>",
    "dots for letters": _own("-webkit-text-security:disc"),
    "a rule that the sheet's end closes": _sheet(".x{display:none"),
    "a feature that no browser has": _sheet("@supports not (display:nothing){.x{display:none}}"),
    "a direction": _sheet(".x:dir(ltr){display:none}"),
    "an element that is known": _sheet(".x:defined{display:none}"),
    "no target": _sheet(".x:not(:target){display:none}"),
    "an old name of is": _sheet(":-webkit-any(p,div).x{display:none}"),
    "a block that the sheet's end closes": _sheet("@media screen{.x{display:none"),
    "a measure that no device has": _own("display:env(nothing,none)"),
    "a ground of its ink": _own("color:#fff;background:currentcolor"),
    "behind the width of the screen": _own("text-indent:100vw;overflow:hidden;white-space:nowrap"),
}
"""Bodies of pages whose text no reader sees; braces are doubled."""

FAINT: Final = frozenset(
    {"letters over one another", "a mixture", "a pale name", "another pale name"}
)
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
    "a wide container": "<style>@container (min-width:1px){{.q{{display:none}}}}</style><p "
    "class=q>{bad}</p>",
    "for print": "<style>@media print{{.q{{display:none}}}}</style><p class=q>{bad}</p>",
    "a sheet for print": "<style media=print>.q{{display:none}}</style><p class=q>{bad}</p>",
    "a sheet of another kind": "<style type=text/less>.q{{display:none}}</style><p "
    "class=q>{bad}</p>",
    "imported for print": f"<style>@import url({_SHEET}) print;</style><p class=q>{{bad}}</p>",
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
