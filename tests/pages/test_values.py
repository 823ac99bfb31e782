"""How values are cut into what the templates draw. Nothing is lost, and nothing changes places."""

from __future__ import annotations

import datetime as dt
import html
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from confirmhub import display
from confirmhub.confirmations.actions import Json
from confirmhub.pages import values, words

JSON: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=30,
)


def text_of(value: values.Value) -> str:
    lines = value.lines or (value.pieces,)
    return "\n".join("".join(part.text for piece in line for part in piece.parts) for line in lines)


@given(st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("\u202e\u200b⟨⟩/\\: \t\n")))
def test_the_pieces_of_a_text_are_its_projection(raw: str) -> None:
    for value in (values.value(raw), values.line(raw)):
        drawn = "".join(part.text for piece in value.pieces for part in piece.parts)
        assert drawn == display.text(raw)


@given(st.text(st.sampled_from("a\n\u202e")))
def test_a_text_for_one_line_has_no_lines_and_the_remarks_of_a_whole(raw: str) -> None:
    value = values.line(raw)

    assert value.lines == ()
    assert [note.message for note in value.notes] == [flag.message for flag in display.show(raw).flags]


@given(st.lists(st.text(st.sampled_from("ab א\t"), min_size=1, max_size=5), min_size=2, max_size=5))
def test_a_text_of_several_lines_is_drawn_line_by_line(lines: list[str]) -> None:
    assert text_of(values.value("\n".join(lines))) == "\n".join(display.text(line) for line in lines)


def test_an_empty_line_has_its_number_and_no_mark() -> None:
    assert values.value("a\n\n").lines == ((values.Piece((display.Part("a"),), alone=False),), (), ())


def test_right_to_left_parts_stand_alone_and_plain_text_does_not() -> None:
    pieces = values.value("/srv/אב/גד/c 100").pieces

    assert [part.text for piece in pieces if piece.alone for part in piece.parts] == ["אב", "גד"]
    assert not any(piece.alone for piece in values.value("/srv/reports/c\u202e").pieces)


def test_a_mark_on_a_separator_is_not_parted_from_it() -> None:
    pieces = values.value("a/\u0301b").pieces

    assert any("/\u0301" in "".join(part.text for part in piece.parts) for piece in pieces)


@pytest.mark.parametrize("raw", ["\ud800", "\x00", "a\u202eb", "<b>", "'\"&"])
def test_the_exact_form_tells_what_is_not_plain(raw: str) -> None:
    value = values.value(raw)

    if display.text(raw) == raw:
        assert (value.exact, value.fingerprint) == ("", "")
    else:
        assert value.exact == ascii(raw)
        assert len(value.fingerprint) == 9
    html.escape(text_of(value)).encode()  # fits in a page


def test_remarks_on_many_lines_are_counted_and_warnings_come_first() -> None:
    notes = values.value("\n".join(["\u00a0 x"] * 20 + ["a\u202eb"])).notes

    assert notes[0].level == "warn"
    assert notes[0].message.startswith("Line 21: ")
    assert len(notes) == 9
    assert notes[-1].message.startswith("And ")


@given(st.dictionaries(st.text(max_size=4), JSON, max_size=5))
def test_every_key_and_every_value_has_its_row(arguments: dict[str, Json]) -> None:
    rows = values.rows(list(arguments.items()))

    def count(item: Json) -> int:
        inner = list(item.values()) if isinstance(item, dict) else item if isinstance(item, list) else []
        return 1 + sum(count(one) for one in inner)

    assert len(rows) == count(arguments) - 1
    assert all((row.key is None) != (row.position is None) for row in rows)


def test_arguments_as_deep_as_they_may_be_are_shown() -> None:
    deep: Json = "bottom"
    for _ in range(63):
        deep = [deep]

    rows = values.rows([("a", deep)])

    assert rows[-1].level == 63
    assert rows[-1].depth == 4
    assert text_of(rows[-1].value or values.value("")) == "bottom"


@pytest.mark.parametrize(
    ("item", "kind", "text"),
    [
        ("1", "text", "1"),
        (1, "number", "1"),
        (1.0, "number", "1.0"),
        (1e300, "number", "1e+300"),
        (True, "true or false", "true"),
        ("true", "text", "true"),
        (None, "nothing", "null"),
        ("null", "text", "null"),
    ],
)
def test_the_type_tells_apart_what_reads_the_same(item: Json, kind: str, text: str) -> None:
    (row,) = values.rows([("a", item)])

    assert row.kind == kind
    assert row.value is not None
    assert text_of(row.value) == text
    assert json.loads(text if kind != "text" else json.dumps(text)) == item


def test_durations_read_in_two_units() -> None:
    spans = [dt.timedelta(seconds=n) for n in (-5, 0, 59, 60, 521, 3600, 3661, 90_000, 172_800)]

    assert [words.span(span) for span in spans] == [
        "0 s", "0 s", "59 s", "1 min", "8 min 41 s", "1 h", "1 h 1 min", "1 d 1 h", "2 d",
    ]  # fmt: skip
    assert [words.ago(dt.timedelta(seconds=n)) for n in (-1, 9, 10)] == ["just now", "just now", "10 s ago"]
    assert [words.length(dt.timedelta(seconds=n)) for n in (60, 90, 300, 7200, 86_400)] == [
        "1 minute", "90 seconds", "5 minutes", "2 hours", "1 day",
    ]  # fmt: skip


def test_what_differs_from_last_time_is_marked() -> None:
    before: list[tuple[str, Json]] = [("a", 1), ("b", "x"), ("c", {"y": [1]}), ("e", "old\u202e")]
    items: list[tuple[str, Json]] = [("a", 1.0), ("b", "x"), ("c", {"y": [2]}), ("d", None)]

    rows, gone = values.compared(items, before=before)

    top = {text_of(row.key): row for row in rows if row.level == 0 and row.key}
    assert {key: row.news for key, row in top.items()} == {
        "a": "changed",
        "b": "",
        "c": "changed",
        "d": "new",
    }
    assert [text_of(top[key].was or values.value("?")) for key in "ac"] == ["1", '{"y": [1]}']
    assert [(text_of(one.key), text_of(one.was)) for one in gone] == [("e", "old⟨U+202E⟩")]


def test_a_long_former_value_is_cut_visibly() -> None:
    rows, _ = values.compared([("a", "new")], before=[("a", "x" * 300 + "\n")])

    assert "more, sha256" in text_of(rows[0].was or values.value("?"))


def test_what_a_list_shows_of_large_arguments_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = json.dumps({"list": ["\u0430\u202eb"] * 2_000})
    made = values.gist(arguments)
    monkeypatch.setattr(display, "text", None)  # whoever renders it again fails

    assert values.gist(arguments) is made
    assert "more, sha256" in made.items[0][1].pieces[0].parts[0].text
