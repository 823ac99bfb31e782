"""The rules by example, where a property would not say which way they go."""

from __future__ import annotations

import pytest

from confirmhub.display import lines, short, show, text, unshow


@pytest.mark.parametrize(
    ("value", "projection"),
    [
        pytest.param("", "\u27e8empty\u27e9", id="nothing"),
        pytest.param("a\u200bb", "a\u27e8U+200B\u27e9b", id="hidden"),
        pytest.param("a\u200b\u200bb", "a\u27e8U+200B\u00d72\u27e9b", id="hidden-twice"),
        pytest.param("\n\n\r\n", "\u27e8U+000A\u00d72\u27e9\u27e8U+000D\u27e9\u27e8U+000A\u27e9", id="runs"),
        pytest.param(
            " a b  c ", "\u27e8U+0020\u27e9a b\u27e8U+0020\u00d72\u27e9c\u27e8U+0020\u27e9", id="spaces"
        ),
        pytest.param(
            "a\nb\tc\rd", "a\u27e8U+000A\u27e9b\u27e8U+0009\u27e9c\u27e8U+000D\u27e9d", id="controls"
        ),
        pytest.param("a\u202ebc", "a\u27e8U+202E\u27e9bc", id="turned-around"),
        pytest.param(" a", "\u27e8U+0020\u27e9a", id="space-first"),
        pytest.param("a ", "a\u27e8U+0020\u27e9", id="space-last"),
        pytest.param(" ", "\u27e8U+0020\u27e9", id="space-alone"),
        pytest.param("\u27e8U+200B\u27e9", "\u27e8U+27E8\u27e9U+200B\u27e8U+27E9\u27e9", id="forged"),
        pytest.param("<u+1", "\u27e8U+003C\u27e9u+1", id="forged-with-less-than"),
        pytest.param("\u2039\uff35\uff0b", "\u27e8U+2039\u27e9\uff35\uff0b", id="forged-wide"),
        pytest.param("\u3008\u2026", "\u27e8U+3008\u27e9\u2026", id="forged-cut"),
        pytest.param("<\U0001ccea+1", "<\u27e8U+1CCEA\u27e9+1", id="forged-with-a-newer-letter"),
        pytest.param("<EMPTY>", "\u27e8U+003C\u27e9EMPTY>", id="forged-empty"),
        pytest.param("<a> <u> <..", "<a> <u> <..", id="no-forgery"),
        pytest.param("a\u0301\u0301", "a\u0301\u27e8U+0301\u27e9", id="mark-twice"),
        pytest.param(
            "a\u0300\u0301\u0302\u0303\u0304\u0305b\u0301",
            "a\u0300\u0301\u0302\u0303\u27e8U+0304\u27e9\u27e8U+0305\u27e9b\u0301",
            id="fifth-mark",
        ),
        pytest.param("a\u0338=\u0338", "a\u27e8U+0338\u27e9=\u0338", id="overlay"),
        pytest.param("x \u0301", "x \u27e8U+0301\u27e9", id="mark-on-space"),
        pytest.param("\u200b\u0301", "\u27e8U+200B\u27e9\u27e8U+0301\u27e9", id="mark-on-token"),
        pytest.param("A\u20e3 1\u20e3", "A\u27e8U+20E3\u27e9 1\u20e3", id="keycap"),
        pytest.param("\u0628\u200c\u0628", "\u0628\u200c\u0628", id="zwnj-joins"),
        pytest.param("\u0628\u064b\u200c\u064c\u0628", "\u0628\u064b\u200c\u064c\u0628", id="zwnj-marks"),
        pytest.param(
            "\u0628\u200c\u064b\u064b\u0628",
            "\u0628\u27e8U+200C\u27e9\u27e8U+064B\u00d72\u27e9\u0628",
            id="zwnj-before-a-mark-twice",
        ),
        pytest.param(
            "\u0628\u0903\u200c\u0628",
            "\u0628\u0903\u27e8U+200C\u27e9\u0628",
            id="zwnj-after-a-mark-that-takes-space",
        ),
        pytest.param(
            "\u0628\u094d\u200c\u200c\u0628",
            "\u0628\u094d\u200c\u27e8U+200C\u27e9\u0628",
            id="zwnj-after-virama-and-zwnj",
        ),
        pytest.param(
            "\u0628\u094d\u200d\u200c\u0628",
            "\u0628\u094d\u200d\u27e8U+200C\u27e9\u0628",
            id="zwnj-after-virama-and-zwj",
        ),
        pytest.param("\u0627\u200c\u0628", "\u0627\u27e8U+200C\u27e9\u0628", id="zwnj-after-alef"),
        pytest.param("\u0628\u200c\u200c\u0628", "\u0628\u27e8U+200C\u00d72\u27e9\u0628", id="zwnj-twice"),
        pytest.param("\u0628\u200cx", "\u0628\u27e8U+200C\u27e9x", id="zwnj-at-the-end"),
        pytest.param("\u0915\u094d\u200d", "\u0915\u094d\u200d", id="zwj-after-virama"),
        pytest.param("\u0915\u094d\u200d\u200d", "\u0915\u094d\u200d\u27e8U+200D\u27e9", id="zwj-twice"),
        pytest.param("\u09b0\u200d\u09cd", "\u09b0\u200d\u09cd", id="zwj-before-virama"),
        pytest.param("\u09b0\u200d", "\u09b0\u27e8U+200D\u27e9", id="zwj-after-letter"),
        pytest.param("\U0001f600\u200d\U0001f600", "\U0001f600\u27e8U+200D\u27e9\U0001f600", id="not-listed"),
        pytest.param(
            "\U0001f468\u200d\U0001f469\u200d\U0001f466\u200d\U0001f600",
            "\U0001f468\u200d\U0001f469\u200d\U0001f466\u27e8U+200D\u27e9\U0001f600",
            id="listed-and-more",
        ),
        pytest.param("\u2764\u200d\U0001f525", "\u2764\u200d\U0001f525", id="listed-without-style"),
        pytest.param(
            "\U0001f469\ufe0f\u200d\U0001f4bb",
            "\U0001f469\u27e8U+FE0F\u27e9\u27e8U+200D\u27e9\U0001f4bb",
            id="listed-with-a-wrong-style",
        ),
        pytest.param("\u263a\ufe0f\ufe0f", "\u263a\ufe0f\u27e8U+FE0F\u27e9", id="style-twice"),
        pytest.param(
            "\u231a\ufe0e\u231a\ufe0f", "\u231a\ufe0e\u231a\u27e8U+FE0F\u27e9", id="style-by-default"
        ),
        pytest.param("1\ufe0f2", "1\u27e8U+FE0F\u27e92", id="styled-digit"),
        pytest.param("#\ufe0f\u20e3", "#\ufe0f\u20e3", id="styled-keycap"),
        pytest.param("\u0600\u0661", "\u0600\u0661", id="number-sign"),
        pytest.param("\udce9", "\u27e8U+DCE9\u27e9", id="surrogate"),
        pytest.param("\ud83d\ude00", "\u27e8U+D83D\u27e9\u27e8U+DE00\u27e9", id="surrogates-apart"),
        pytest.param("\U0001fae9", "\u27e8U+1FAE9\u27e9", id="newer-than-the-tables"),
    ],
)
def test_a_rule_holds(value: str, projection: str) -> None:
    assert text(value) == projection


def test_a_token_says_what_it_stands_for() -> None:
    shown = show("ls\u202e\u202e\0\udce9\ue000\u0378\ufffe ")

    assert [(part.text, part.title) for part in shown.parts] == [
        ("ls", None),
        ("\u27e8U+202E\u00d72\u27e9", "U+202E RIGHT-TO-LEFT OVERRIDE, 2 times"),
        ("\u27e8U+0000\u27e9", "U+0000 NULL"),
        ("\u27e8U+DCE9\u27e9", "U+DCE9 byte E9, not UTF-8"),
        ("\u27e8U+E000\u27e9", "U+E000 private use"),
        ("\u27e8U+0378\u27e9", "U+0378 unassigned"),
        ("\u27e8U+FFFE\u27e9", "U+FFFE noncharacter"),
        ("\u27e8U+0020\u27e9", "U+0020 SPACE"),
    ]


def test_a_structured_value_falls_into_pieces() -> None:
    pieces = show("/\u05d0\u05d1/a\u200bb://x.y, z?a=1\u0338").pieces

    assert ["".join(part.text for part in piece) for piece in pieces] == [
        "/", "\u05d0\u05d1", "/", "a\u27e8U+200B\u27e9b", "://", "x", ".", "y", ", ", "z", "?", "a", "=",
        "1\u27e8U+0338\u27e9",
    ]  # fmt: skip


def test_a_mark_stays_with_the_separator_it_strikes_out() -> None:
    pieces = show("a=\u0338b").pieces

    assert ["".join(part.text for part in piece) for piece in pieces] == ["a", "=\u0338b"]


def test_lines_end_at_line_feeds_only() -> None:
    shown = lines("a\r\n\u2028b\n\n  c")

    assert [line.text for line in shown] == [
        "a\u27e8U+000D\u27e9",
        "\u27e8U+2028\u27e9b",
        "\u27e8empty\u27e9",
        "\u27e8U+0020\u00d72\u27e9c",
    ]


def test_a_short_text_is_not_cut() -> None:
    assert short("a" * 64, 64) == "a" * 64


def test_a_cut_keeps_both_ends() -> None:
    shown = short("rm -rf /srv/" + "a" * 200 + ".tar.exe", 80)

    assert len(shown) == 80
    assert shown.startswith("rm -rf /srv/aaa")
    assert shown.endswith("a.tar.exe")
    assert "\u27e8\u2026176 more, sha256 " in shown


def test_a_long_path_keeps_its_folder_and_its_name() -> None:
    shown = short("/home/me/" + "deep/" * 90 + "report.txt", 120)

    assert len(shown) <= 120
    assert shown.startswith("/home/me/deep/")
    assert shown.endswith("/report.txt")


def test_a_cut_does_not_divide_a_family() -> None:
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466"

    shown = short(family * 20, 64)

    head, _, tail = shown.partition("\u27e8\u2026")
    assert len(head) % len(family) == 0
    assert len(tail.partition("\u27e9")[2]) % len(family) == 0


def test_a_cut_does_not_divide_a_flag() -> None:
    shown = short("\U0001f1e9\U0001f1ea" * 40 + " x", 64)

    assert shown.startswith("\u27e8\u2026")


def test_a_limit_without_room_for_the_cut_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 64"):
        short("a", 63)


@pytest.mark.parametrize(
    "projection",
    [
        pytest.param("", id="nothing"),
        pytest.param("a\u200bb", id="raw"),
        pytest.param("\u27e8U+0041\u27e9", id="token-without-need"),
        pytest.param("\u27e8U+200B\u00d71\u27e9", id="count-of-one"),
        pytest.param("\u27e8U+200B\u27e9\u27e8U+200B\u27e9", id="run-not-joined"),
        pytest.param("\u27e8U+110000\u27e9", id="no-code-point"),
        pytest.param("\u27e8U+200B\u00d799999999\u27e9", id="more-than-any-value-holds"),
        pytest.param("\u27e8\u20269 more, sha256 0123456789abcdef\u27e9", id="cut"),
        pytest.param("a  b", id="two-spaces"),
    ],
)
def test_what_is_no_projection_is_not_read_back(projection: str) -> None:
    with pytest.raises(ValueError, match=r"text projection|no code point"):
        unshow(projection)
