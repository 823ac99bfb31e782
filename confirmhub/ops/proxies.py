"""The address of who asks, where a proxy that the settings name tells it."""

from __future__ import annotations

from http import HTTPStatus
from ipaddress import ip_address

from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from confirmhub.ops.layers import Layer

NO_ADDRESS = PlainTextResponse(
    "The proxy in front must send the caller's address in X-Forwarded-For, and sent something else.\n",
    status_code=HTTPStatus.BAD_REQUEST,
    headers={"Cache-Control": "no-store"},
)


class Addressed(Layer):
    """Lets only addresses through as such, each in one spelling: limits count by it, and logs name it."""

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["client"]:
            host, port = scope["client"]
            try:
                address = ip_address(host)
            except ValueError:
                await NO_ADDRESS(scope, receive, send)
                return
            # An IPv4 caller of a socket for both families is the same caller (RFC 4291, section 2.5.5.2).
            scope["client"] = (str(getattr(address, "ipv4_mapped", None) or address), port)
        await self.app(scope, receive, send)
