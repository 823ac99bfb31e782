"""What holds for every string. The numbers are those of the design: P1 to P8."""

from __future__ import annotations

import itertools
import unicodedata

import regex
from hypothesis import given
from hypothesis import strategies as st

from confirmhub.display import lines, short, show, text, unshow
from tests.display.hostile import OPEN, TOKEN, hidden_in, values, words_and_twins
from tests.invariants import proves

ASCII_WORDS = st.text("".join(map(chr, range(0x21, 0x7F))).replace("<", ""), min_size=1)


@given(value=values)
def test_the_value_can_be_read_back(value: str) -> None:
    assert unshow(text(value)) == value


@proves("display:distinct")
@given(one=values, other=values)
def test_two_values_never_look_alike(one: str, other: str) -> None:
    assert (text(one) == text(other)) == (one == other)


@proves("display:nothing-hidden")
@given(value=values)
def test_nothing_hidden_is_shown_raw(value: str) -> None:
    projection = text(value)

    assert hidden_in(projection) == []
    projection.encode("utf-8")


@given(value=values)
def test_the_text_is_one_line_that_begins_and_ends_with_something_visible(value: str) -> None:
    projection = text(value)

    assert projection.splitlines() == [projection]
    assert projection == projection.strip(" ")
    assert "  " not in projection
    assert unicodedata.category(projection[0])[0] != "M"


@given(value=values)
def test_marks_never_pile_up_nor_lean_on_a_token(value: str) -> None:
    projection = regex.sub(r"[\u200c\u200d\ufe0e\ufe0f\u20e3]", "", TOKEN.sub(OPEN, text(value)))

    assert not regex.search(r"[\u27e8 ]\p{M}", projection)
    assert not regex.search(r"(\p{Mn})\1", projection)
    assert not regex.search(r"(?:\p{Mc}*\p{Mn}){5}", projection)


@given(value=values)
def test_without_a_token_the_text_is_the_value(value: str) -> None:
    projection = text(value)

    assert OPEN in projection or projection == value


@given(value=st.lists(ASCII_WORDS, min_size=1).map(" ".join))
def test_plain_ascii_is_shown_as_it_is(value: str) -> None:
    assert text(value) == value
    assert show(value).flags == ()


@given(value=st.from_regex(r"\A(<[!-~]{1,8} ?){1,4}x\Z"))
def test_only_what_spells_a_token_changes_ascii(value: str) -> None:
    spells = regex.search(r"<(?i:u\+|\.\.\.|empty)", value) is not None

    assert (text(value) != value) == spells


@given(one=values, other=values, filler=st.text(alphabet="ab /\u00e9\u0430", min_size=60, max_size=90))
def test_texts_that_are_cut_still_differ(one: str, other: str, filler: str) -> None:
    first, second = (filler + value + filler for value in (one, other))

    assert (short(first, 64) == short(second, 64)) == (first == second)


@given(value=values | values.map(lambda value: value * 9), limit=st.integers(64, 160))
def test_a_cut_falls_between_graphemes_and_says_what_is_missing(value: str, limit: int) -> None:
    projection = short(value, limit)

    assert len(projection) <= limit
    cut = regex.search("\u27e8\u2026([0-9]+) more, sha256 [0-9a-f]{16}\u27e9", projection)
    if cut is None:
        assert projection == text(value)
        return
    head, tail = projection[: cut.start()], projection[cut.end() :]
    missing = int(cut[1])
    start = len(unshown(head))
    stop = start + missing
    assert (unshown(head), unshown(tail)) == (value[:start], value[stop:])
    borders = {0, *(match.end() for match in regex.finditer(r"\X", value))}
    # Beside a token is a border too: nothing there is drawn together.
    assert start in borders or head.endswith("\u27e9") or TOKEN.match(text(value), len(head))
    assert stop in borders or tail.startswith(OPEN) or text(value)[: -len(tail)].endswith("\u27e9")


def unshown(part: str) -> str:
    """A part of a projection, read back without asking whether it is the whole of one."""

    def meant(match: regex.Match[str]) -> str:
        code, _, count = match[0][3:-1].partition("\u00d7")
        return chr(int(code, 16)) * int(count or 1)

    return TOKEN.sub(meant, part)


@given(value=values)
def test_parts_and_pieces_add_up_to_the_text(value: str) -> None:
    shown = show(value)

    assert shown.text == text(value)
    assert "".join(part.text for part in shown.parts) == shown.text
    assert [part for piece in shown.pieces for part in piece if part.title] == [
        part for part in shown.parts if part.title
    ]
    assert "".join(part.text for piece in shown.pieces for part in piece) == shown.text
    assert all((part.title is not None) == (TOKEN.fullmatch(part.text) is not None) for part in shown.parts)


@given(value=words_and_twins | values)
def test_only_what_a_warning_is_about_is_marked(value: str) -> None:
    shown = show(value)
    warned = {flag.code for flag in shown.flags if flag.level == "warn"}

    marked = [part for part in shown.parts if part.poses]

    assert not marked or warned & {"looks-ascii", "mixed-script", "mixed-digits"}
    assert not any(part.title for part in marked)
    assert not any(one.poses and other.poses for one, other in itertools.pairwise(shown.parts))


@given(value=values)
def test_no_piece_begins_within_a_grapheme(value: str) -> None:
    for before, after in zip(show(value).pieces, show(value).pieces[1:], strict=False):
        if before[-1].title is None and after[0].title is None:
            pair = before[-1].text + after[0].text
            assert len(before[-1].text) in {match.end() for match in regex.finditer(r"\X", pair)}


@given(value=values)
def test_lines_are_shown_like_values(value: str) -> None:
    shown = lines(value)

    assert "\n".join(unshow(line.text) for line in shown) == value
    assert all("\u27e8U+000A" not in line.text for line in shown)


@given(value=values | st.text(st.characters(categories=["L", "M", "N"]), max_size=9))
def test_what_flags_say_is_bounded_ascii(value: str) -> None:
    for flag in show(value).flags:
        assert flag.message.isascii()
        assert flag.message.isprintable()
        assert len(flag.message) < 700


@given(value=words_and_twins)
def test_what_reads_as_ascii_is_flagged(value: str) -> None:
    assert (
        value.isascii()
        or OPEN in text(value)
        or {flag.code for flag in show(value).flags}
        & {
            "looks-ascii",
            "mixed-script",
            "digits",
            "mixed-digits",
        }
    )


@given(value=values)
def test_of_two_spellings_one_is_flagged(value: str) -> None:
    other = unicodedata.normalize("NFC", value)

    assert (
        other == value
        or OPEN in text(value) + text(other)
        or "not-nfc" in {flag.code for flag in show(value).flags}
    )
