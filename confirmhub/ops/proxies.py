"""The address of who asks, where a proxy that the settings name tells it."""

from __future__ import annotations

from http import HTTPStatus
from ipaddress import ip_address

from starlette.types import Receive, Scope, Send

from confirmhub.ops.layers import Layer, refuse

_NO_ADDRESS = "The proxy in front must send the caller's address in X-Forwarded-For, and sent something else."


class Addressed(Layer):
    """Lets only addresses through as such, each in one spelling: limits count by it, and logs name it."""

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["client"]:
            host, port = scope["client"]
            try:
                address = ip_address(host)
            except ValueError:
                scope["client"] = None  # what was sent in its place is not to be logged as one
                status = HTTPStatus.BAD_REQUEST
                refusal = refuse(scope, status=status, code="no_address", words=_NO_ADDRESS, headers={})
                await refusal(scope, receive, send)
                return
            # An IPv4 caller of a socket for both families is the same caller (RFC 4291, section 2.5.5.2).
            scope["client"] = (str(getattr(address, "ipv4_mapped", None) or address), port)
        await self.app(scope, receive, send)
