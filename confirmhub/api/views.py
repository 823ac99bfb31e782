"""The API's resources. Each makes one call of the core and translates."""

from __future__ import annotations

import uuid

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from confirmhub.api.auth import BearerAuthentication, HasScope, bearer_of
from confirmhub.api.renderers import AsciiJSONRenderer
from confirmhub.api.serializers import ConfirmationSerializer
from confirmhub.confirmations import queries


class ConfirmationDetail(APIView):
    """One confirmation, for the principal that asked for it."""

    http_method_names = ("get", "head")
    authentication_classes = (BearerAuthentication,)
    permission_classes = (HasScope,)
    renderer_classes = (AsciiJSONRenderer,)
    required_scope = "confirm:read"

    def get(self, request: Request, confirmation_id: uuid.UUID) -> Response:
        confirmation = queries.get_for_requester(
            confirmation_id=confirmation_id, requester=bearer_of(request).principal
        )
        return Response(ConfirmationSerializer(confirmation).data, headers={"Cache-Control": "no-store"})
