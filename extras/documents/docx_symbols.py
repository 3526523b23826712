"""Signs that Word writes as codes of the fonts Symbol and Wingdings.

Not for: letters of other fonts, which have codes of Unicode.
"""

from typing import Final

_LATIN_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_GREEK: Final = "ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖαβχδεφγηιϕκλμνοπθρστυϖωξψζ"
_SYMBOL: Final = dict(zip(map(ord, _LATIN_LETTERS), _GREEK, strict=True)) | {
    **{
        0xA3: "≤",
        0xA5: "∞",
        0xAB: "↔",
        0xAC: "←",
        0xAE: "→",
        0xB0: "°",
        0xB1: "±",
        0xB3: "≥",
        0xB4: "×",
    },
    **{
        0xB6: "∂",
        0xB7: "•",
        0xB8: "÷",
        0xB9: "≠",
        0xBA: "≡",
        0xBB: "≈",
        0xC6: "∅",
        0xCE: "∈",
        0xD1: "∇",
    },
    **{
        0xD2: "®",
        0xD3: "©",
        0xD4: "™",
        0xD5: "∏",
        0xD6: "√",
        0xDE: "⇒",
        0xE5: "∑",
        0xF2: "∫",
    },
}
_WINGDINGS: Final = {
    **{
        0x4A: "☺",
        0x6C: "●",
        0x6E: "■",
        0x6F: "□",
        0x71: "❑",
        0x72: "❒",
        0xA7: "▪",
        0xA8: "☐",
        0xD8: "➢",
    },
    **{
        0xDF: "←",
        0xE0: "→",
        0xF0: "⇨",
        0xFB: "✗",
        0xFC: "✓",
        0xFD: "☒",
        0xFE: "☑",
        0x28: "☎",
        0x2A: "✉",
    },
}
_UNKNOWN: Final = "□"
_PRIVATE_USE_BASE: Final = 0xF000
"""Where fonts of signs have their codes in Unicode."""
_PRIVATE: Final = {
    _PRIVATE_USE_BASE + code: sign
    for font in (_WINGDINGS, _SYMBOL)
    for code, sign in font.items()
    if code > 0x7F
} | {_PRIVATE_USE_BASE + code: chr(code) for code in range(0x20, 0x7F)}


def symbol(font: str, code: str) -> str:
    """Return the sign with a hexadecimal code in a font, a box for one that is not
    known or malformed; fonts that are not Wingdings are read as Symbol."""
    try:
        number = int(code, 16)
    except ValueError:
        return _UNKNOWN
    number = number - _PRIVATE_USE_BASE if number >= _PRIVATE_USE_BASE else number
    known = _WINGDINGS if "wingdings" in font.lower() else _SYMBOL
    plain = chr(number) if 0x20 <= number < 0x7F else _UNKNOWN
    return known.get(number, plain)


def without_private(text: str) -> str:
    """Return text with the codes of such fonts as their signs."""
    return (
        text.translate(_PRIVATE)
        if any("\uf020" <= letter <= "\uf0ff" for letter in text)
        else text
    )
