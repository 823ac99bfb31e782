"""Where text may be divided without changing how it is drawn."""

from __future__ import annotations

from confirmhub.display.properties import (
    ENCLOSING_MARK,
    MARK,
    PICTURE_STYLE,
    PREPENDED,
    SPACING_MARK,
    TEXT_STYLE,
    TONES,
    VIRAMAS,
    ZWJ,
    ZWNJ,
    kind,
)

# What continues the character before it, besides marks: joiners, selectors, skin tones, tags,
# the halfwidth Katakana voice signs, Thai and Lao am, and Hangul vowels and finals.
_CONTINUING = frozenset(
    [ZWNJ, ZWJ, TEXT_STYLE, PICTURE_STYLE, *TONES]
    + [chr(code) for code in range(0xE0020, 0xE0080)]
    + ["\uff9e", "\uff9f", "\u0e33", "\u0eb3"]
    + [chr(code) for code in (*range(0x1160, 0x1200), *range(0xD7B0, 0xD800))]
)
_HANGUL_INITIALS = frozenset(map(chr, (*range(0x1100, 0x1160), *range(0xA960, 0xA980))))
_FLAG_LETTERS = frozenset(map(chr, range(0x1F1E6, 0x1F200)))
_BINDING = PREPENDED | VIRAMAS | _HANGUL_INITIALS | {ZWJ, ZWNJ}


def divides(before: str, after: str) -> bool:
    """Whether there is a border between two neighbours.

    Never inside a grapheme cluster of UAX #29, and not at all of its borders: where a longer
    look would be needed (flags, conjuncts), this says no.
    """
    return not (
        after in _CONTINUING
        or kind(after) in (MARK, SPACING_MARK, ENCLOSING_MARK)
        or before in _BINDING
        or (before in _FLAG_LETTERS and after in _FLAG_LETTERS)
    )
