"""The document of the API, for programs and for people. It is the same for all, and tells no secret."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from confirmhub.api.document import document
from confirmhub.api.renderers import written


@dataclass(frozen=True, slots=True)
class Row:
    """One field of a body or an answer, one parameter, or one header."""

    name: str
    kind: str
    what: str


@dataclass(frozen=True, slots=True)
class Table:
    """What a route takes in one place, or answers."""

    title: str
    rows: list[Row]


@dataclass(frozen=True, slots=True)
class Refusal:
    """One way to be refused."""

    status: str
    name: str
    what: str


@dataclass(frozen=True, slots=True)
class Described:
    """A route, as the page shows it. All of it is in our own words."""

    name: str
    method: str
    path: str
    what: str
    scope: str
    tables: list[Table]
    refusals: list[Refusal]


@require_safe
def openapi(request: HttpRequest) -> HttpResponse:  # noqa: ARG001 - Django's signature
    """The OpenAPI document."""
    return HttpResponse(written(document()), content_type="application/json")


@require_safe
def docs(request: HttpRequest) -> HttpResponse:
    """The same for people. The known viewers need styles or images that the pages' policy does not let in."""
    told = document()
    about = [line for line in told["info"]["description"].split("\n") if line]
    return render(request, "api/docs.html", {"about": about, "routes": list(_routes(told))})


def _routes(told: dict[str, Any]) -> Iterator[Described]:
    for path, methods in told["paths"].items():
        for method, route in methods.items():
            wanted = route.get("security", [])
            yield Described(
                name=route["operationId"],
                method=method.upper(),
                path=path,
                what=route["description"],
                scope=" ".join(wanted[0]["bearer"]) if wanted else "",
                tables=[table for table in _tables(told, route) if table.rows],
                refusals=list(_refusals(route)),
            )


def _tables(told: dict[str, Any], route: dict[str, Any]) -> Iterator[Table]:
    for title, where in (("Query", "query"), ("Headers", "header")):
        given = [one for one in route.get("parameters", []) if one["in"] == where]
        yield Table(title, [_row(told, one["name"], one | one["schema"]) for one in given])
    if "requestBody" in route:
        kind = _named(told, route["requestBody"]["content"]["application/json"]["schema"])
        yield Table("Body", list(_fields(told, kind)))
    for status, answer in route["responses"].items():
        if not status.startswith(("2", "3")):
            continue
        headers = answer.get("headers", {})
        kind = _named(told, answer.get("content", {}).get("application/json", {}).get("schema", {}))
        rows = [_row(told, name, header | header["schema"]) for name, header in headers.items()]
        yield Table(f"Answer {status}", [*rows, *_fields(told, kind)])


def _fields(told: dict[str, Any], kind: dict[str, Any]) -> Iterator[Row]:
    needed = kind.get("required", []) if kind.get("additionalProperties") is False else []
    for name, field in kind.get("properties", {}).items():
        row = _row(told, name, field)
        yield Row(row.name, f"{row.kind}, required" if name in needed else row.kind, row.what)


def _row(told: dict[str, Any], name: str, field: dict[str, Any]) -> Row:
    return Row(name, _kind(told, field), field.get("description", ""))


def _kind(told: dict[str, Any], field: dict[str, Any]) -> str:
    for many in ("allOf", "oneOf"):
        if many in field:
            return " or ".join(_kind(told, one) for one in field[many])
    if "$ref" in field:
        found = _named(told, field)
        return " | ".join(found["enum"]) if "enum" in found else _name(field)
    if "enum" in field:
        return " | ".join(map(str, field["enum"]))
    if field.get("type") == "array":
        return f"list of {_kind(told, field['items'])}"
    types = field.get("type", "any")
    return str(field.get("format") or (" or ".join(types) if isinstance(types, list) else types))


def _named(told: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = told["components"]["schemas"][_name(schema)] if "$ref" in schema else schema
    return found


def _name(schema: dict[str, Any]) -> str:
    return str(schema["$ref"].rpartition("/")[2])


def _refusals(route: dict[str, Any]) -> Iterator[Refusal]:
    for status, answer in route["responses"].items():
        content = answer.get("content", {}).get("application/problem+json", {})
        for example in content.get("examples", {}).values():
            problem = example["value"]
            yield Refusal(status, problem["type"].rpartition(":")[2], problem["title"])
