"""The API's resources. Each makes one call of the core and translates.

Waiting and redeeming are in `hot`: thousands do so at once, and Django's threads are few.
"""

from __future__ import annotations

import datetime as dt
import uuid
from http import HTTPStatus
from typing import Any, ClassVar

from django.conf import settings
from django.http import HttpResponse
from rest_framework.exceptions import MethodNotAllowed, ParseError, Throttled, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from confirmhub.api import callers, limits, requests
from confirmhub.api.auth import BearerAuthentication, HasScope, bearer_of
from confirmhub.api.errors import NoSuchPath
from confirmhub.api.operations import answered, of_one, operation, sent
from confirmhub.api.parsers import StrictJSONParser
from confirmhub.api.renderers import AnyAccept, AsciiJSONRenderer
from confirmhub.api.serializers import (
    ConfirmationSerializer,
    KeysSerializer,
    ListedSerializer,
    SignedSerializer,
    etag,
    is_known,
)
from confirmhub.confirmations import errors, ledger, proof, queries
from confirmhub.confirmations.actions import Action, Observation
from confirmhub.confirmations.errors import NotFound
from confirmhub.confirmations.models import Confirmation
from confirmhub.confirmations.receipts import Receipt
from confirmhub.confirmations.states import Result
from confirmhub.oauth.bearer import Bearer

FOR_SERVICES = ("question", "facts", "fingerprint")
MADE = (HTTPStatus.OK, HTTPStatus.CREATED)
A_TIME = dt.datetime(2026, 1, 5, 12, tzinfo=dt.UTC)  # of examples
SETTLED = (
    errors.Denied(reason="Not today."),
    errors.Expired(),
    errors.Revoked(reason="No longer."),
    errors.Cancelled(),
)


class Resource(APIView):
    """What every resource is: read strictly, written in ASCII, for who holds the scope."""

    authentication_classes = (BearerAuthentication,)
    permission_classes = (HasScope,)
    parser_classes = (StrictJSONParser,)
    renderer_classes = (AsciiJSONRenderer,)
    content_negotiation_class = AnyAccept
    scopes: ClassVar[dict[str, str]] = {}

    @property
    def required_scope(self) -> str:
        method = str(self.request.method) if hasattr(self, "request") else ""
        return self.scopes.get("GET" if method == "HEAD" else method, "")

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        # Before who calls is asked: no token makes a method that is not there.
        if str(request.method).lower() not in self.http_method_names:
            raise MethodNotAllowed(str(request.method))
        super().initial(request, *args, **kwargs)

    def taken(self, kind: type[requests.Taken]) -> dict[str, Any]:
        """The body, checked."""
        given = kind(data=self.request.data)
        given.is_valid(raise_exception=True)
        return dict(given.validated_data)


class Confirmations(Resource):
    """The caller's confirmations."""

    http_method_names = ("get", "head", "post")
    scopes: ClassVar[dict[str, str]] = {"GET": "confirm:read", "POST": "confirm:request"}

    @operation(name="list", query=requests.Page, gives=ListedSerializer)
    def get(self, request: Request) -> Response:
        """List the newest first. A service sees all that it asked, a person's program its own for them."""
        fields = ((name, value) for name, values in request.query_params.lists() for value in values)
        given = requests.Page(data=requests.query(fields))
        given.is_valid(raise_exception=True)
        asked = given.validated_data
        bearer = bearer_of(request)
        found = queries.list_page(
            client_id=bearer.principal.client_id,
            subject=None if bearer.is_service else bearer.principal.subject,
            status=asked.get("status"),
            action=asked.get("action"),
            before=asked.get("cursor"),
            limit=asked["limit"] + 1,
        )
        page = found[: asked["limit"]]
        more = page[-1].id if len(found) > len(page) else None
        return Response(ListedSerializer({"confirmations": page, "next_cursor": more}).data)

    @operation(
        name="ask",
        takes=requests.Asked,
        gives=ConfirmationSerializer,
        on=MADE,
        refuses=(
            errors.PolicyDenies(),
            errors.ActionDiffers(),
            errors.TooManyOpen(retry_after=10),
            Throttled(60),
        ),
        headers=(
            sent(
                "Idempotency-Key",
                "Your own key for this question. The same key gets the same confirmation again, whatever"
                " became of it; with another action it is refused. Another key gets the open confirmation of"
                " the same action and arguments too, as it was asked first, and is then not kept.",
                pattern=r'^(?!""$)[!-~]{1,200}$',
            ),
            answered("Location", "The address of the confirmation.", on=MADE),
            answered("ETag", "What changes with it.", on=MADE),
            answered("RateLimit-Policy", "How much may be asked.", on=MADE),
            answered("RateLimit", "What of that is left, and for how many seconds.", on=MADE),
        ),
    )
    def post(self, request: Request) -> Response:
        """Ask for a confirmation, or get back the open one that was asked for before.

        Of one action with the same arguments, for the same person, one is open at a time. Who asks again gets
        it back with 200 in place of 201: its question, summary, facts and fingerprint stay as they were asked
        first. Put into the arguments what tells two equal jobs apart.
        """
        bearer = bearer_of(request)
        asked = self.taken(requests.Asked)
        if not bearer.is_service and (told := [name for name in FOR_SERVICES if asked[name]]):
            raise ValidationError({name: ["Only a service says this."] for name in told})
        requester = callers.asking(bearer=bearer, on_behalf_of=asked["on_behalf_of"])
        left = limits.spend(who=requester)
        facts = tuple((fact["label"], fact["value"]) for fact in asked["facts"])
        words = {"question": asked["question"]} if asked["question"] else {}
        made = ledger.request(
            requester=requester,
            action=_action(bearer, asked),
            summary=asked["summary"],
            observation=Observation(facts=facts, fingerprint=asked["fingerprint"]),
            idempotency_key=_idempotency_key(request),
            **words,
        )
        found = queries.get_for_requester(confirmation_id=made.id, requester=requester)
        path = f"{settings.PUBLIC_URL}/api/v1/confirmations/{made.id}"
        status = HTTPStatus.CREATED if made.is_new else HTTPStatus.OK
        headers = {"Location": path, "ETag": etag(found), **left}
        return Response(ConfirmationSerializer(found).data, status=status, headers=headers)


class ConfirmationDetail(Resource):
    """One confirmation, for the principal that asked for it."""

    http_method_names = ("get", "head")
    scopes: ClassVar[dict[str, str]] = {"GET": "confirm:read"}

    @operation(
        name="read",
        gives=ConfirmationSerializer,
        refuses=of_one(),
        headers=(
            sent("If-None-Match", "The ETag of what you have."),
            answered("ETag", "What changes with it.", on=(HTTPStatus.OK, HTTPStatus.NOT_MODIFIED)),
        ),
        empty=(HTTPStatus.NOT_MODIFIED,),
    )
    def get(self, request: Request, confirmation_id: uuid.UUID) -> Response | HttpResponse:
        """Read it. With If-None-Match, 304 as long as nothing has changed."""
        found = _mine(bearer_of(request), confirmation_id)
        tag = etag(found)
        if is_known(tag, request.headers.get("If-None-Match", "")):
            unchanged = HttpResponse(status=HTTPStatus.NOT_MODIFIED, headers={"ETag": tag})
            del unchanged.headers["Content-Type"]
            return unchanged
        return Response(ConfirmationSerializer(found).data, headers={"ETag": tag})


class Outcomes(Resource):
    """What came of a redemption."""

    http_method_names = ("post",)
    scopes: ClassVar[dict[str, str]] = {"POST": "confirm:redeem"}

    @operation(
        name="report",
        takes=requests.Report,
        gives=ConfirmationSerializer,
        refuses=of_one(errors.NotRedeemed(), errors.AlreadyReported()),
    )
    def post(self, request: Request, confirmation_id: uuid.UUID) -> Response:
        """Report it, under the key of the redemption. The same result again changes nothing."""
        bearer = bearer_of(request)
        report = self.taken(requests.Report)
        found = _mine(bearer, confirmation_id)
        # What a tool of the server does, it reports itself: whoever called it saw nothing of it.
        if found.tool_digest:
            raise NotFound
        if found.redeemed_at is None:
            raise errors.NotRedeemed
        if found.redemption_key != report["redemption_key"]:
            raise NotFound
        receipt = Receipt(
            found.id, bytes(found.digest).hex(), report["redemption_key"], found.redeemed_at, replayed=True
        )
        ledger.report_outcome(receipt=receipt, result=Result(report["result"]), detail=report["detail"])
        return Response(ConfirmationSerializer(_mine(bearer, confirmation_id)).data)


class Cancellation(Resource):
    """A question taken back."""

    http_method_names = ("post",)
    scopes: ClassVar[dict[str, str]] = {"POST": "confirm:request"}

    @operation(
        name="cancel",
        takes=requests.Withdrawal,
        gives=ConfirmationSerializer,
        refuses=of_one(*SETTLED, errors.AlreadyDecided(), errors.AlreadyRedeemed(redeemed_at=A_TIME)),
    )
    def post(self, request: Request, confirmation_id: uuid.UUID) -> Response:
        """Take back a question that nobody has decided on."""
        bearer = bearer_of(request)
        requester = callers.holding(bearer=bearer, confirmation_id=confirmation_id)
        reason = self.taken(requests.Withdrawal)["reason"]
        ledger.cancel(confirmation_id=confirmation_id, requester=requester, reason=reason)
        return Response(ConfirmationSerializer(_mine(bearer, confirmation_id)).data)


class SignedReceipt(Resource):
    """The receipt of a spent confirmation, to keep and to verify offline."""

    http_method_names = ("get", "head")
    scopes: ClassVar[dict[str, str]] = {"GET": "confirm:read"}

    @operation(name="receipt", gives=SignedSerializer, refuses=of_one(errors.NotRedeemed()))
    def get(self, request: Request, confirmation_id: uuid.UUID) -> Response:
        """Get it signed, as a JWS in compact form."""
        found = _mine(bearer_of(request), confirmation_id)
        return Response({"receipt": proof.sign(confirmation=found)})


class ReceiptKeys(APIView):
    """The public keys that receipts are verified with, for anybody."""

    http_method_names = ("get", "head")
    authentication_classes = ()
    permission_classes = ()
    renderer_classes = (AsciiJSONRenderer,)
    content_negotiation_class = AnyAccept

    @operation(name="receipt_keys", gives=KeysSerializer, is_public=True)
    def get(self, request: Request) -> Response:  # noqa: ARG002 - the framework's signature
        """Get them as a JWK set."""
        return Response(proof.keys())


class Nothing(APIView):
    """Every other address of the API: programs get an answer that they can read there too."""

    authentication_classes = ()
    permission_classes = ()
    renderer_classes = (AsciiJSONRenderer,)
    content_negotiation_class = AnyAccept
    refusal: type[Exception] = NoSuchPath

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:  # noqa: ARG002 - the framework's
        """Refuse it before anything is read.

        Raises:
            NoSuchPath: There is no such route.
            NotFound: There is, and this can be no confirmation's id.
        """
        raise self.refusal


class Waiting(Resource):
    """What waits for the person whose token it is. Read only: people decide in their browser."""

    http_method_names = ("get", "head")
    scopes: ClassVar[dict[str, str]] = {"GET": "confirm:admin"}

    @operation(name="waiting", gives=ListedSerializer, refuses=(NotFound(),))
    def get(self, request: Request) -> Response:
        """List it, what is due first at the top, a hundred at most."""
        bearer = bearer_of(request)
        person = queries.approver(subject="" if bearer.is_service else bearer.principal.subject)
        found = list(queries.list_waiting_for(approver=person).prefetch_related("decisions")[:100])
        return Response(ListedSerializer({"confirmations": found, "next_cursor": None}).data)


def _mine(bearer: Bearer, confirmation_id: uuid.UUID) -> Confirmation:
    requester = callers.holding(bearer=bearer, confirmation_id=confirmation_id)
    return queries.get_for_requester(confirmation_id=confirmation_id, requester=requester)


def _action(bearer: Bearer, given: dict[str, Any]) -> Action:
    return Action(audience=bearer.audience, name=given["action"], arguments=given["arguments"])


def _idempotency_key(request: Request) -> str | None:
    """The Idempotency-Key header: a string in quotes, as its draft says, or as most send it, without."""
    given = request.headers.get("Idempotency-Key")
    if given is None:
        return None
    key = given[1:-1] if len(given) > 1 and given[0] == given[-1] == '"' else given
    if not key:
        raise ParseError("The Idempotency-Key header is empty.")
    return key
