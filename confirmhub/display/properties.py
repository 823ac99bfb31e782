"""What the renderer asks of one character, answered from the generated tables.

Not from `unicodedata`, which says something else in every version of Python: what a person saw
must not depend on where confirmhub runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from confirmhub.display.tables import characters, emoji, lookalikes, scripts, twins

ZWNJ = "\u200c"
ZWJ = "\u200d"
TEXT_STYLE = "\ufe0e"
PICTURE_STYLE = "\ufe0f"
KEYCAP = "\u20e3"
KEYCAP_BASES = frozenset("0123456789#*")
# What prose is set with, where a keyboard has plain signs only: quotation marks, dashes and the minus,
# the ellipsis, the signs for number, for times and for a trade mark.
TYPOGRAPHY = frozenset("\u2018\u2019\u201a\u2039\u203a\u201c\u201d\u2013\u2212\u2026\u2116\u00d7\u2122")
TONES = "\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff"

UNICODE_VERSION = characters.UNICODE_VERSION
CONFUSABLES_VERSION = lookalikes.CONFUSABLES_VERSION

# The kinds of character. From ESCAPED on, all are shown as tokens (rule R2).
PLAIN, LETTER, MARK, SPACING_MARK, ENCLOSING_MARK, ESCAPED, UNASSIGNED = range(7)


def _ranges(written: str) -> Iterator[range]:
    for item in written.split():
        first, _, last = item.partition("-")
        yield range(int(first, 16), int(last or first, 16) + 1)


def _members(written: str) -> frozenset[str]:
    return frozenset(chr(code) for codes in _ranges(written) for code in codes)


def _painted(layers: Iterable[tuple[int, str]]) -> bytes:
    """One byte a code point: the number of the last layer that lists it, else 0."""
    canvas = bytearray(0x110000)
    for number, written in layers:
        for codes in _ranges(written):
            canvas[codes.start : codes.stop] = bytes([number]) * len(codes)
    return bytes(canvas)


def _sequences() -> Iterator[str]:
    for tones, shapes in emoji.SEQUENCES.items():
        for shape in shapes.split():
            for digits in tones.split() or [""]:
                tone = iter(digits)
                yield "".join(
                    chr(int(place.rstrip("*"), 16))
                    + (TONES[int(next(tone)) - 1] if place.endswith("*") else "")
                    for place in shape.split("_")
                )


_KINDS = _painted(
    [
        (LETTER, characters.LETTER_OTHER),
        (MARK, characters.MARK_NONSPACING),
        (SPACING_MARK, characters.MARK_SPACING),
        (ENCLOSING_MARK, characters.MARK_ENCLOSING),
        (ESCAPED, characters.ESCAPED),
        (UNASSIGNED, characters.UNASSIGNED),
    ]
)
_SCRIPT_SETS = (frozenset[str](), *(frozenset(names.split(", ")) for names in scripts.SCRIPTS))
_SCRIPTS = _painted(enumerate(scripts.SCRIPTS.values(), start=1))

VIRAMAS = _members(characters.VIRAMA)
OVERLAYS = _members(characters.OVERLAY)
JOINS_NEXT = _members(characters.JOINS_NEXT)
JOINS_PREVIOUS = _members(characters.JOINS_PREVIOUS)
TRANSPARENT = _members(characters.TRANSPARENT)
PREPENDED = _members(characters.PREPENDED)
EMOJI_AS_TEXT = _members(characters.EMOJI_AS_TEXT)
EMOJI_AS_PICTURE = _members(characters.EMOJI_AS_PICTURE)

SEQUENCES = frozenset(_sequences())
SEQUENCE_STARTS = frozenset(sequence[0] for sequence in SEQUENCES)
SEQUENCE_PREFIXES = frozenset(
    sequence[:length] for sequence in SEQUENCES for length in range(1, len(sequence))
)

LOOKALIKES = {char: look for look, written in lookalikes.LOOKALIKES.items() for char in _members(written)}
TWINS = {
    "".join(chr(int(code, 16)) for code in look.split()): tuple(
        chr(int(code.rstrip("*"), 16)) for code in alike.split()
    )
    for look, alike in twins.TWINS.items()
}
RARE = frozenset(
    chr(int(code[:-1], 16)) for alike in twins.TWINS.values() for code in alike.split() if code.endswith("*")
)
PROTOTYPES = {char: look for look, alike in TWINS.items() for char in alike}
CONTROL_NAMES = {chr(int(code, 16)): name for code, name in characters.CONTROL_NAMES.items()}


def kind(char: str) -> int:
    """One of the kinds above."""
    return _KINDS[ord(char)]


def scripts_of(char: str) -> frozenset[str]:
    """The scripts that use a character, by name; none if all do (Common, Inherited)."""
    return _SCRIPT_SETS[_SCRIPTS[ord(char)]]
