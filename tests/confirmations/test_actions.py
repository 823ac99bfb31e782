"""The canonical form: strict, injective, stable, total."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from confirmhub.confirmations import strict
from confirmhub.confirmations.actions import (
    MAX_BYTES,
    Action,
    Observation,
    canonical,
    digest_arguments,
    parse_arguments,
)
from confirmhub.confirmations.errors import InvalidAction
from confirmhub.confirmations.strict import MAX_INTEGER
from tests.factories import AUDIENCE, TRANSFER

doubles = st.floats(allow_nan=False, allow_infinity=False).filter(
    lambda value: (value != 0 or math.copysign(1, value) > 0) and (value == 0 or 1e-300 < abs(value) < 1e300)
)
keys = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
texts = st.text(st.characters(exclude_categories=[]), max_size=8)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-MAX_INTEGER, MAX_INTEGER) | doubles | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)
objects = st.dictionaries(keys, values, max_size=5)


def typed(value: object) -> object:
    """A value that equals another only if they are of one type throughout: not so 1, 1.0 and True."""
    if isinstance(value, dict):
        return ("object", frozenset((key, typed(item)) for key, item in value.items()))
    if isinstance(value, list):
        return ("array", tuple(typed(item) for item in value))
    return (type(value).__name__, value)


@given(objects)
def test_what_is_canonical_parses_back_to_itself(arguments: dict) -> None:
    text = canonical(arguments=arguments)

    assert text.isascii()
    assert typed(parse_arguments(raw=text.encode())) == typed(arguments)
    assert canonical(arguments=parse_arguments(raw=text.encode())) == text


@given(objects, objects)
def test_two_different_objects_never_share_a_canonical_form(one: dict, other: dict) -> None:
    assert (canonical(arguments=one) == canonical(arguments=other)) == (typed(one) == typed(other))


@given(objects, st.randoms(use_true_random=False))
def test_the_order_of_keys_and_white_space_do_not_change_the_digest(arguments: dict, random: object) -> None:
    shuffled = list(arguments.items())
    random.shuffle(shuffled)

    spaced = json.dumps(dict(shuffled), indent=2)

    assert digest_arguments(spaced.encode()) == digest_arguments(json.dumps(arguments).encode())


@given(st.binary(max_size=200) | texts.map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_bytes_are_parsed_or_refused(raw: bytes) -> None:
    try:
        arguments = parse_arguments(raw=raw)
    except InvalidAction as refusal:
        assert str(refusal)  # noqa: PT017 - either is right, a crash is not
    else:
        assert isinstance(arguments, dict)


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"\xef\xbb\xbf{}", "byte order mark"),
        (b'{"a":"\xff"}', "not valid UTF-8"),
        (b'{"a":"\xed\xa0\x80"}', "not valid UTF-8"),
        (b"[1]", "must be a JSON object"),
        (b"1", "must be a JSON object"),
        (b"", "not JSON"),
        (b'{"a":1}x', "not JSON"),
        (b'{"a":1,"a":1}', "same key twice"),
        (b'{"a":{"b":1,"b":2}}', "same key twice"),
        (b'{"a":NaN}', "NaN"),
        (b'{"a":-Infinity}', "-Infinity"),
        (b'{"a":1e400}', "out of range"),
        (b'{"a":1e-400}', "out of range"),
        (b'{"a":1e99999999999}', "out of range"),
        (b'{"a":0.1000000000000000055511151231257827}', "does not carry exactly"),
        (b'{"a":9007199254740992}', r"2\*\*53-1"),
        (b'{"a":' + b"1" * 5_000 + b"}", r"2\*\*53-1"),
        (b'{"a":-0}', "negative zero"),
        (b'{"a":-0.0}', "negative zero"),
        (b'{"\\ud800":1}', "surrogate pair"),
        (b'{"a":' + b"[" * 64 + b"]" * 64 + b"}", "deeper than 64"),
        (b'{"a":' + b"[" * 20_000 + b"}", "deeper than 64"),
        (b'{"a":"' + b"x" * MAX_BYTES + b'"}', "32768"),
    ],
)
def test_what_two_readers_could_read_differently_is_refused_and_told_apart(raw: bytes, says: str) -> None:
    with pytest.raises(InvalidAction, match=says):
        parse_arguments(raw=raw)


@pytest.mark.parametrize(
    "raw", [b'"' + b'\\"' * 16_000, b'{"a":' + b'"' * 32_000, b"[" * 32_000, b'"\\' * 10_000]
)
def test_hostile_bytes_take_no_longer_than_plain_ones(raw: bytes) -> None:
    plain = b'{"a":"' + b"x" * len(raw) + b'"}'
    began = time.perf_counter()
    with pytest.raises(strict.NotStrict):
        strict.parse(raw=raw, max_depth=64)
    hostile = time.perf_counter() - began
    began = time.perf_counter()
    strict._depth(plain)

    # Quadratic, these take thousands of times as long.
    assert hostile < 0.2 + 100 * (time.perf_counter() - began)


def test_the_limits_themselves_are_accepted() -> None:
    assert parse_arguments(raw=b'{"a":' + b"[" * 63 + b"]" * 63 + b"}")
    assert parse_arguments(raw=b'{"a":"' + b"x" * (MAX_BYTES - 8) + b'"}')
    assert parse_arguments(raw=b'{"a":9007199254740991,"b":-9007199254740991}')
    assert parse_arguments(raw=b'{"a":"\\ud800","__proto__":{},"":null}')


@pytest.mark.parametrize("value", [math.nan, math.inf, 2**53, -0.0, {1: 2}, b"x", {"a": {3}}, 1e301])
def test_a_value_that_came_otherwise_is_held_to_the_same_rule(value: object) -> None:
    with pytest.raises(InvalidAction):
        Action(audience=AUDIENCE, name="run", arguments={"a": value})


def test_arguments_that_only_their_types_make_long_are_refused() -> None:
    with pytest.raises(InvalidAction, match="32768"):
        canonical(arguments={"a": "ä" * (MAX_BYTES // 2)})


@pytest.mark.parametrize("name", ["", "1st", "a b", "a\n", "ä", "a" * 101])
def test_a_malformed_name_is_refused(name: str) -> None:
    with pytest.raises(InvalidAction, match="name"):
        Action(audience=AUDIENCE, name=name, arguments={})


@pytest.mark.parametrize(
    "audience",
    [
        "",
        "localhost",
        "ftp://a.example",
        "https:///x",
        "https://a/#x",
        "https://ä",
        "https://[",
        "https://a b",
    ],
)
def test_a_malformed_audience_is_refused(audience: str) -> None:
    with pytest.raises(InvalidAction, match="audience"):
        Action(audience=audience, name="run", arguments={})


def test_a_malformed_fingerprint_or_too_many_facts_are_refused() -> None:
    with pytest.raises(InvalidAction, match="fingerprint"):
        Observation(facts=(), fingerprint="ä")
    with pytest.raises(InvalidAction, match="facts"):
        Observation(facts=(("a", "b"),) * 33, fingerprint="")


def test_a_digest_stays_what_it_is() -> None:
    """Digests are stored: another value here means that no old confirmation can be redeemed."""
    assert TRANSFER.canonical == '{"cents":1250,"to":"DE89370400440532013000"}'
    assert TRANSFER.digest.hex() == "342cc0cd416c9f426e1934745b2cd125cf248705d53c482d2ccdf0d401b842a8"


def test_the_handed_digest_cases_hold() -> None:
    cases = json.loads(Path(__file__).with_name("digest_cases.json").read_text(encoding="utf-8"))

    for case in cases:
        expect = case["expect"]
        own = attempt(case["input"])
        assert not (expect.get("reject") and own), case["id"]
        for other in [*expect.get("digest_differs_from", ()), *expect.get("reject_or_differ", ())]:
            assert own is None or attempt(other) != own, case["id"]
        for other in expect.get("digest_equal_to", ()):
            assert attempt(other) == own, case["id"]
    assert len(cases) == 20


def attempt(text: str) -> str | None:
    try:
        return digest_arguments(text.encode("utf-8", "surrogatepass"))
    except InvalidAction:
        return None
