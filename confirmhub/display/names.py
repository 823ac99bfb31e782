"""What a character is called, for people. Everything here is ASCII."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

from confirmhub.display.properties import CONTROL_NAMES, UNASSIGNED, kind

# The code points that `os.fsdecode` makes of the bytes of a file name that is not UTF-8.
_UNDECODED = range(0xDC80, 0xDD00)


def name(char: str) -> str:
    """The Unicode name, or for characters that have none, what they are."""
    code = ord(char)
    if char in CONTROL_NAMES:
        return CONTROL_NAMES[char]
    if code in _UNDECODED:
        return f"byte {code - 0xDC00:02X}, not UTF-8"
    if 0xD800 <= code < 0xE000:
        return "lone surrogate"
    if kind(char) == UNASSIGNED:
        noncharacter = 0xFDD0 <= code < 0xFDF0 or code & 0xFFFE == 0xFFFE
        return "noncharacter" if noncharacter else "unassigned"
    return unicodedata.name(char, "private use")


@lru_cache(maxsize=1024)
def named(char: str) -> str:
    """The code point and the name."""
    return f"U+{ord(char):04X} {name(char)}"
