"""The OpenAPI document says what the code does, and the page that shows it keeps to the pages' policy."""

from __future__ import annotations

import re
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

import jsonschema
import pytest
from django.test import Client
from django.urls import URLPattern
from drf_spectacular.drainage import GENERATOR_STATS
from drf_spectacular.validation import validate_schema

from confirmhub.api import errors, hot, requests, urls
from confirmhub.api.document import _made, document
from confirmhub.confirmations.errors import ConfirmationError
from tests.api.test_errors import make
from tests.api.test_hot_fields import WRONG

METHODS = ("get", "post", "put", "patch", "delete")


@pytest.fixture(scope="module")
def told() -> dict[str, Any]:
    return document()


def routes(told: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in told["paths"].items():
        for method, route in methods.items():
            yield method, path, route


def test_it_is_generated_without_a_warning_and_is_valid(capsys: pytest.CaptureFixture[str]) -> None:
    _made.cache_clear()
    GENERATOR_STATS.reset()
    fresh = document()

    assert capsys.readouterr().err == ""
    assert not GENERATOR_STATS
    assert fresh["openapi"].startswith("3.1")
    validate_schema(fresh)


def test_it_lists_exactly_the_routes_that_are_served(told: dict[str, Any]) -> None:
    served = {
        (method, "/" + re.sub(r"<(?:uuid:)?(\w+)>", r"{\1}", str(route.pattern)))
        for route in urls.resources
        for method in _methods(route)
    } | {
        (method.lower(), route.path)
        for route in hot.routes(inlet=lambda app: app)
        for method in route.app._methods
    }

    assert {(method, path) for method, path, _ in routes(told)} == {
        (method, path) for method, path in served if method != "head"
    }


def _methods(route: URLPattern) -> list[str]:
    view = route.callback.view_class
    return [name for name in METHODS if name in view.http_method_names and hasattr(view, name)]


def test_each_route_says_which_scope_it_wants(told: dict[str, Any]) -> None:
    public = [path for _, path, route in routes(told) if not route.get("security")]
    scopes = {
        (route.path.rpartition("/")[2]): route.app.required_scope
        for route in hot.routes(inlet=lambda app: app)
    }

    assert public == ["/api/v1/receipt-keys"]
    for _, path, route in routes(told):
        name = path.rpartition("/")[2]
        if name in scopes:
            assert route["security"] == [{"bearer": [scopes[name]]}]


def test_every_example_of_a_refusal_is_what_the_server_answers(told: dict[str, Any]) -> None:
    types = {f"urn:confirmhub:{kind.code}": kind for kind in errors.STATUS}
    for method, path, route in routes(told):
        for status, answer in route["responses"].items():
            if "application/problem+json" not in answer.get("content", {}):
                continue
            examples = answer["content"]["application/problem+json"]["examples"].values()
            assert examples, (method, path, status)
            for example in examples:
                problem = example["value"]
                assert problem["status"] == int(status)
                kind: type[ConfirmationError] | None = types.get(problem["type"])
                if kind is not None:
                    assert problem["title"] == errors.handle(make(kind), {}).data["title"]


def test_what_a_redemption_takes_is_what_the_code_takes(told: dict[str, Any]) -> None:
    schema = told["components"]["schemas"]["About"]

    assert set(schema["properties"]) == set(requests.About().fields)
    for body in WRONG:
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(body, schema)


def test_anybody_reads_it(client: Client, db: None) -> None:
    answer = client.get("/api/v1/openapi.json")

    assert answer.status_code == HTTPStatus.OK
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.json() == document()
    assert client.post("/api/v1/openapi.json").status_code == HTTPStatus.METHOD_NOT_ALLOWED


def test_the_page_tells_of_every_route_and_every_refusal(
    client: Client, told: dict[str, Any], db: None
) -> None:
    page = client.get("/api/v1/docs").content.decode()

    for method, path, route in routes(told):
        assert f"{method.upper()} {path}" in page
        for status, answer in route["responses"].items():
            for example in (
                answer.get("content", {}).get("application/problem+json", {}).get("examples", {}).values()
            ):
                assert f"{status} {example['value']['type'].removeprefix('urn:confirmhub:')}" in page
