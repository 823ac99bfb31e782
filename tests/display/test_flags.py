"""What is said of a value, and how loud."""

from __future__ import annotations

import pytest

from confirmhub.display import LOUDNESS, show


def flags_of(value: str) -> dict[tuple[str, str], str]:
    return {(flag.code, flag.level): flag.message for flag in show(value).flags}


@pytest.mark.parametrize(
    ("value", "code"),
    [
        pytest.param("report\u202efdp.exe", "bidi", id="override"),
        pytest.param("ok\U000e0041\U000e0042", "hidden-text", id="tags"),
        pytest.param("ok\U000e0020", "hidden-text", id="one-tag"),
        pytest.param("\U0001f600\U000e0158\U000e0159", "hidden-text", id="selectors"),
        pytest.param("bru\u200bsh", "invisible", id="inside-an-ascii-word"),
        pytest.param("timeout,\u3164", "blank", id="blank-letter"),
        pytest.param("\x1b[2Kok", "terminal", id="escape"),
        pytest.param("safe\revil", "terminal", id="carriage-return"),
        pytest.param("a.pdf\0.exe", "control", id="null"),
        pytest.param("p\u0430ypal.com", "mixed-script", id="cyrillic-in-latin"),
        pytest.param("\u03b1pple", "mixed-script", id="greek-in-latin"),
        pytest.param("Zo\u0451", "mixed-script", id="accented"),
        pytest.param("\u0430\u0440\u0440\u04cf\u0435.com", "looks-ascii", id="whole-word"),
        pytest.param(
            "https://\u0430\u0440\u0440\u04cf\u0435.com/\u0416", "looks-ascii", id="beside-a-plain-letter"
        ),
        pytest.param("\u0261oogle", "looks-ascii", id="latin-in-latin"),
        pytest.param("curl\u2010o", "looks-ascii", id="hyphen"),
        pytest.param("ls\u037e rm", "looks-ascii", id="greek-question-mark"),
        pytest.param("etc\uff0fpasswd", "looks-ascii", id="wide-slash"),
        pytest.param("evil.example\u3002com", "looks-ascii", id="ideographic-full-stop"),
        pytest.param("etc\u30cepasswd", "looks-ascii", id="katakana-no"),
        pytest.param("1\u06600", "mixed-digits", id="digits"),
        pytest.param("1,\u0660\u0660\u0660", "mixed-digits", id="digits-after-a-comma"),
    ],
)
def test_a_deceptive_value_is_warned_of(value: str, code: str) -> None:
    assert (code, "warn") in flags_of(value)


@pytest.mark.parametrize(
    "value",
    [
        pytest.param("O\u2019Brien \u2013 \u201cyes\u201d\u2026 5 \u00d7 3 \u2212 \u00bd", id="typography"),
        pytest.param(
            "\u041e\u0442\u0447\u0451\u0442 \u0441 \u0438\u044e\u043b\u044f", id="russian-with-short-words"
        ),
        pytest.param("\u0131l\u0131k \u00e7ay", id="turkish"),
        pytest.param("l\u00e6sning \u00feau", id="nordic"),
        pytest.param("10 k\u03a9, \u0394x = 5 \u03bcm", id="greek-units"),
        pytest.param("T\u30b7\u30e3\u30c4 Windows\uff0fMac\u3002\uff08\uff11\uff09", id="japanese"),
        pytest.param("Facebook\u0e02\u0e2d\u0e07\u0e09\u0e31\u0e19", id="thai"),
        pytest.param("\u06f1\u06f2\u066b\u06f5", id="persian-number"),
        pytest.param("\u09ea\u09ea", id="bengali-number"),
        pytest.param("one\n\ttwo\r\n  three \u00a0x\u00ad", id="several-lines"),
        pytest.param("\u0e44\u0e17\u0e22\u200b\u0e44\u0e17\u0e22", id="thai-word-break"),
        pytest.param("\u0645\u0631\u062d\u0628\u0627 (ABC\u200e)", id="direction-marks"),
        pytest.param("\u280b\u2800\u280b", id="braille"),
        pytest.param("\u27e8\u03c8|\u03c6\u27e9 <b> if a<b", id="brackets"),
        pytest.param("caf\udce9.txt \ue000 \U0001fae9", id="no-characters"),
        pytest.param("\U0001f469\U0001f3fd\u200d\U0001f4bb \u2764\ufe0f 1\ufe0f\u20e3 \u2796", id="emoji"),
        pytest.param("ka\u02d0 co\u00adoperate", id="length-mark-and-soft-hyphen"),
    ],
)
def test_ordinary_text_is_not_warned_of(value: str) -> None:
    assert [flag for flag in show(value).flags if flag.level == "warn"] == []


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ("\u0645\u06cc\u200c\u062e\u0648", "joiner"),
        ("\u2764\ufe0f", "selector"),
        ("\u05d0 100 200", "rtl"),
        ("e\u0301", "not-nfc"),
        ("\U0001d429\U0001d41a\U0001d432", "compat"),
        ("\u06f4\u06f2", "digits"),
        ("a\u0301\u0301", "mark"),
        ("a  b", "space"),
        ("a\nb", "line-break"),
        ("\u27e8", "bracket"),
        ("\udce9", "undecodable"),
        ("\ue000", "private"),
        ("\u0378", "unassigned"),
        ("\u845b\U000e0100", "invisible"),
    ],
)
def test_what_the_eye_cannot_tell_is_told(value: str, code: str) -> None:
    assert (code, "info") in flags_of(value)


def test_hidden_text_is_spelled_out() -> None:
    value = "ok" + "".join(chr(0xE0000 + ord(char)) for char in "ignore this") + "."

    assert flags_of(value) == {
        ("hidden-text", "warn"): "11 hidden characters that spell text: "
        "from U+E0069 TAG LATIN SMALL LETTER I on, spelling 'ignore this', at character 3."
    }


def test_bytes_hidden_in_selectors_are_spelled_out() -> None:
    value = "\U0001f600" + "".join(chr(0xE0100 + byte - 16) for byte in b"rm -rf")

    assert "spelling 'rm -rf'" in flags_of(value)[("hidden-text", "warn")]


def test_long_hidden_text_is_cut() -> None:
    message = flags_of("\U000e0041" * 5000)[("hidden-text", "warn")]

    assert message.startswith("5000 hidden characters")
    assert "AAA'..." in message
    assert len(message) < 300


def test_a_message_names_the_first_and_counts_the_rest() -> None:
    message = flags_of("a\u200b\u2060b\u200b\u00ad\u2062\u2063c")[("invisible", "info")]

    assert message == (
        "6 invisible characters: U+200B ZERO WIDTH SPACE, at character 2; "
        "U+2060 WORD JOINER, at character 3; U+00AD SOFT HYPHEN, at character 6; and 2 more kinds."
    )


def test_a_number_in_other_digits_is_read_out() -> None:
    assert flags_of("\u06f1\u06f2\u066b\u06f5")[("digits", "info")] == (
        "1 number in another script's digits: U+06F1 EXTENDED ARABIC-INDIC DIGIT ONE, read as 12.5, "
        "at character 1."
    )


def test_a_look_alike_word_is_read_out() -> None:
    assert flags_of("\u0430\u0440\u0440\u04cf\u0435")[("looks-ascii", "warn")] == (
        "1 look-alike of plain ASCII text: U+0430 CYRILLIC SMALL LETTER A "
        'in a word that reads as "apple", at character 1.'
    )


def test_a_short_word_beside_ascii_letters_is_not_at_home() -> None:
    assert ("mixed-script", "warn") in flags_of("p\u0430y \u0436\u0443\u043a")


@pytest.mark.parametrize(
    "word", ["p\u0430ypal", "\u0440\u0430y", "\u0430\u0440\u0440\u04cf\u0435", "ldm\u0131n"]
)
def test_a_look_alike_word_is_told_of_once(word: str) -> None:
    (message,) = flags_of(word).values()

    assert "in a word that reads as" in message


def test_ordinary_typography_is_told_of_quietly() -> None:
    value = (
        "\u201cQ3\u201d \u2013 it\u2019s \u2018final\u2019\u2026 \u21165, 3\u00d74 \u2014 20\u00b0, \u20ac5"
    )

    assert {level for _, level in flags_of(value)} == {"quiet"}
    assert flags_of("20\u00b0 \u2014 \u20ac5") == {}
    assert list(flags_of("e\u00d7ample")) == [("looks-ascii", "info")]


def test_a_number_that_looks_like_another_is_told_once() -> None:
    assert list(flags_of("\u09ea\u09ea")) == [("digits", "info")]


def test_scripts_that_agree_in_pairs_only_are_a_mixture() -> None:
    # Each two of these Vedic signs and this digit are used in one script, but not all three.
    assert flags_of("a \u0ce6\u1cd0\u1ce9")[("mixed-script", "warn")] == (
        "1 word of letters from several scripts: Bengali and Devanagari and Kannada, "
        "U+0CE6 KANNADA DIGIT ZERO, at character 3."
    )


def test_warnings_come_first() -> None:
    levels = [flag.level for flag in show("it\u2019s e\u0301\u202e\u05d0 p\u0430y  ").flags]

    assert levels == sorted(levels, key=LOUDNESS.index)
    assert set(levels) == set(LOUDNESS)


@pytest.mark.parametrize(
    ("value", "marked"),
    [
        ("p\u0430yp\u0430l.com", ["\u0430", "\u0430"]),
        ("https://\u0430\u0440\u0440\u04cf\u0435.com", ["\u0430\u0440\u0440\u04cf\u0435"]),
        ("\u043c\u043e\u0441\u043a\u0432a", ["a"]),
        ("curl\u2010o", ["\u2010"]),
        ("etc\uff0fpasswd", ["\uff0f"]),
        ("1\u0660\u06600", ["\u0660\u0660"]),
        ("p\u0430\u0301ypal", ["\u0430\u0301"]),
        ("\u041e\u0442\u0447\u0451\u0442 \u0441 \u0438\u044e\u043b\u044f", []),
        ("10 k\u03a9", []),
        ("plain", []),
    ],
)
def test_what_poses_is_marked_where_it_stands(value: str, marked: list[str]) -> None:
    shown = show(value)

    assert [part.text for part in shown.parts if part.poses] == marked
    assert [part.text for piece in shown.pieces for part in piece if part.poses] == marked
    assert shown.text == value


def test_a_mark_says_what_it_is() -> None:
    assert [part.poses for part in show("p\u0430y").parts] == [None, "U+0430 CYRILLIC SMALL LETTER A", None]
