"""What the document describes: Django's own routes, and those of `hot` by stand-ins that nothing serves."""

from __future__ import annotations

import uuid
from http import HTTPStatus
from typing import ClassVar

from django.urls import path
from rest_framework.exceptions import Throttled
from rest_framework.request import Request
from rest_framework.response import Response

from confirmhub.api import requests, urls
from confirmhub.api.operations import answered, of_one, operation
from confirmhub.api.serializers import ConfirmationSerializer, RedeemedSerializer
from confirmhub.api.views import A_TIME, SETTLED, Resource
from confirmhub.confirmations import errors


class Wait(Resource):
    """The wait for a decision."""

    http_method_names = ("get", "head")
    scopes: ClassVar[dict[str, str]] = {"GET": "confirm:read"}

    @operation(
        name="wait",
        query=requests.Patience,
        gives=ConfirmationSerializer,
        refuses=of_one(Throttled(errors.ASK_AFTER)),
        headers=(answered("ETag", "What changes with it.", on=(HTTPStatus.OK,)),),
    )
    def get(self, request: Request, confirmation_id: uuid.UUID) -> Response:
        """Wait until it is decided, or settled in another way, or the time is up: then it reads pending."""
        raise NotImplementedError  # `hot` answers it; this is read for the document alone


class Redeem(Resource):
    """The redemption."""

    http_method_names = ("post",)
    scopes: ClassVar[dict[str, str]] = {"POST": "confirm:redeem"}

    @operation(
        name="redeem",
        takes=requests.About,
        gives=RedeemedSerializer,
        refuses=of_one(
            errors.Pending(retry_after=errors.ASK_AFTER),
            *SETTLED,
            errors.AlreadyRedeemed(redeemed_at=A_TIME),
            errors.ActionDiffers(),
            errors.Halted(reason="We look at this first."),
        ),
    )
    def post(self, request: Request, confirmation_id: uuid.UUID) -> Response:
        """Spend the yes for the action that is about to be taken, then take it, then report.

        It succeeds once. The same redemption_key gets the same receipt again, marked replayed.
        """
        raise NotImplementedError  # `hot` answers it; this is read for the document alone


_ONE = "api/v1/confirmations/<uuid:confirmation_id>"
urlpatterns = [
    *urls.resources,
    path(f"{_ONE}/wait", Wait.as_view()),
    path(f"{_ONE}/redeem", Redeem.as_view()),
]
