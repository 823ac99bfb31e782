"""What a redemption takes: the quick look at its fields lets nothing by that the serializer would refuse."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rest_framework.exceptions import ValidationError

from confirmhub.api import requests

RIGHT: dict[str, Any] = {"action": "payments.transfer", "arguments": {"cents": 1}, "redemption_key": "k"}
WRONG: list[dict[str, Any]] = [
    {},
    RIGHT | {"more": 1},
    *({name: value for name, value in RIGHT.items() if name != left} for left in RIGHT),
    RIGHT | {"action": ""},
    RIGHT | {"action": "a" * 101},
    RIGHT | {"action": 1},
    RIGHT | {"action": None},
    RIGHT | {"arguments": []},
    RIGHT | {"arguments": "{}"},
    RIGHT | {"arguments": None},
    RIGHT | {"redemption_key": ""},
    RIGHT | {"redemption_key": "k" * 201},
    RIGHT | {"redemption_key": True},
]


def checked(body: dict[str, Any]) -> dict[str, Any] | None:
    slow = requests.About(data=body)
    return dict(slow.validated_data) if slow.is_valid() else None


@pytest.mark.parametrize("body", WRONG)
def test_a_wrong_field_is_refused(body: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        requests.about(body)


values = st.one_of(
    st.text(), st.text(st.characters(max_codepoint=0x7F), max_size=210), st.integers(), st.none()
)
bodies = st.fixed_dictionaries(
    {},
    optional={
        "action": values,
        "arguments": st.one_of(values, st.dictionaries(st.text(), values)),
        "redemption_key": values,
        "other": values,
    },
)


@given(bodies | bodies.map(lambda body: RIGHT | body))
def test_both_ways_to_look_at_the_fields_agree(body: dict[str, Any]) -> None:
    try:
        quick = requests.about(body)
    except ValidationError:
        quick = None

    assert quick == checked(body)
