"""What may be the audience of a service: one spelling of an absolute URL, so that two never look like one."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import ValidationError

from confirmhub.oauth import services


@pytest.mark.parametrize(
    "audience",
    [
        "https://payments.example",
        "https://a.example:8443/x/y",
        "http://127.0.0.1:9000/mcp",
        "{ours}/api",
        "{ours}",
    ],
)
def test_an_absolute_address_in_one_spelling_is_an_audience(settings: Any, audience: str) -> None:
    services.check_audience(audience.format(ours=settings.PUBLIC_URL))


@pytest.mark.parametrize(
    "audience",
    [
        "", "payments", "urn:payments", "http://payments.example/", "http://10.0.0.1:9000/mcp",
        "//payments.example", "https://Payments.example/", "HTTPS://payments.example/", "https:///mcp",
        "https://payments.example:443/", "https://payments.example/mcp/", "https://payments.example/a/../b",
        "https://payments.example//b", "https://payments.example/?a=1", "https://payments.example/#a",
        "https://u@payments.example/", "https://pаyments.example/", "https://payments.example/" + "x" * 300,
        "http://localhost:80000/", "http://localhost:8000.evil.example/",
    ],
)  # fmt: skip
def test_anything_else_is_no_audience(audience: str) -> None:
    with pytest.raises(ValidationError):
        services.check_audience(audience)
