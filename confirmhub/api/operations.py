"""What the document says of a route: what it takes, what it answers, and each refusal it can give.

The examples of refusals are the answers of `errors.handle` itself, so that the document cannot say another
thing than the server does.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from http import HTTPStatus
from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import exceptions
from rest_framework.serializers import BaseSerializer

from confirmhub.api import errors, requests
from confirmhub.api.serializers import ProblemSerializer
from confirmhub.confirmations.errors import Busy, InvalidAction, NotFound, Unavailable

PROBLEM = "application/problem+json"

# What each kind of route can always refuse.
_TOKEN: tuple[Exception, ...] = (
    exceptions.NotAuthenticated(),
    exceptions.AuthenticationFailed(),
    exceptions.PermissionDenied(),
    Busy(),
    Unavailable(),
)
_QUERY: tuple[Exception, ...] = (exceptions.ValidationError({"limit": ["A valid integer is required."]}),)
_BODY: tuple[Exception, ...] = (
    exceptions.ParseError("The body must be a JSON object."),
    exceptions.ValidationError({"action": ["This field is required."]}),
    InvalidAction(),
    errors.Unread(status=HTTPStatus.REQUEST_TIMEOUT, words="The body did not arrive in time."),
    errors.Unread(status=HTTPStatus.REQUEST_ENTITY_TOO_LARGE, words="The body is larger than 65536 bytes."),
    errors.Unread(
        status=HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        words="The content type is not understood. Send application/json.",
    ),
)
_DESCRIPTIONS = {
    "Retry-After": "Seconds after which to try again.",
    "WWW-Authenticate": "What token is needed, and where it is got (RFC 6750, RFC 9728).",
}


def operation(
    *,
    name: str,
    gives: type[BaseSerializer[Any]],
    on: Sequence[HTTPStatus] = (HTTPStatus.OK,),
    takes: type[requests.Taken] | None = None,
    query: type[requests.Taken] | None = None,
    refuses: Collection[Exception] = (),
    headers: Collection[OpenApiParameter] = (),
    empty: Collection[HTTPStatus] = (),
    is_public: bool = False,
) -> Callable[[Any], Any]:
    """Describe the method of a view. It `gives` that with the statuses `on`, nothing with the `empty`."""
    refusals = [
        *(() if is_public else _TOKEN),
        *(_QUERY if query else ()),
        *(_BODY if takes else ()),
        *refuses,
    ]
    described, told = _refused(refusals)
    answers: dict[Any, Any] = {int(status): gives for status in on} | {int(status): None for status in empty}
    return extend_schema(
        operation_id=name,
        request=takes,
        parameters=[*([query] if query else []), *headers, *told],
        responses=answers | described,
        auth=[] if is_public else None,
    )


def of_one(*refuses: Exception) -> tuple[Exception, ...]:
    """The refusals of a route of one confirmation."""
    return (NotFound(), *refuses)


def sent(name: str, description: str, *, pattern: str | None = None) -> OpenApiParameter:
    """A header that a request may have."""
    return OpenApiParameter(
        name, OpenApiTypes.STR, OpenApiParameter.HEADER, description=description, pattern=pattern
    )


def answered(name: str, description: str, *, on: Sequence[HTTPStatus]) -> OpenApiParameter:
    """A header of each answer with one of these statuses."""
    return OpenApiParameter(
        name,
        OpenApiTypes.STR,
        OpenApiParameter.HEADER,
        description=description,
        required=True,
        response=[int(status) for status in on],
    )


def _refused(
    refusals: Collection[Exception],
) -> tuple[dict[Any, OpenApiResponse], list[OpenApiParameter]]:
    examples: dict[int, list[OpenApiExample]] = defaultdict(list)
    headers: dict[tuple[str, int], list[bool]] = defaultdict(list)
    for exc in refusals:
        answer = errors.handle(exc, {})
        code = answer.data["type"].removeprefix("urn:confirmhub:")
        shown = OpenApiExample(code, value=answer.data, summary=answer.data["title"], media_type=PROBLEM)
        examples[answer.status_code].append(shown)
        for name in _DESCRIPTIONS:
            headers[name, answer.status_code].append(name in answer.headers)
    answers: dict[Any, OpenApiResponse] = {
        (status, PROBLEM): OpenApiResponse(
            ProblemSerializer, description=HTTPStatus(status).phrase, examples=examples[status]
        )
        for status in sorted(examples)
    }
    told = [
        OpenApiParameter(
            name,
            OpenApiTypes.INT if name == "Retry-After" else OpenApiTypes.STR,
            OpenApiParameter.HEADER,
            description=_DESCRIPTIONS[name],
            required=all(there),
            response=[status],
        )
        for (name, status), there in headers.items()
        if any(there)
    ]
    return answers, told


class _BearerScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call] # its metaclass has no types
    """How the document names the token, and the scope of each route."""

    target_class = "confirmhub.api.auth.BearerAuthentication"
    name = "bearer"

    def get_security_requirement(self, auto_schema: AutoSchema) -> dict[str, list[Any]]:
        scopes: dict[str, str] = getattr(auto_schema.view, "scopes", {})
        return {self.name: [scopes[auto_schema.method]]}

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, Any]:  # noqa: ARG002 - the library's
        return {
            "type": "http",
            "scheme": "bearer",
            "description": "An OAuth access token of confirmhub: a service gets it with its client "
            "credentials, a person's program with their consent. Each route says which scope it wants.",
        }
