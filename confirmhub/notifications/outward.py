"""One POST to an address of somebody's choosing.

So, as where a client's document is fetched: https, a public address that was resolved once and is then the
one dialled, no redirects, no proxy from the environment, a cap on size, and one hard deadline over all of
it. What comes back is a status, and when to try again.
"""

from __future__ import annotations

import http.client
import ipaddress
import re
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from urllib.parse import SplitResult, urlsplit

from django.conf import settings

from confirmhub.oauth import fetcher
from confirmhub.oauth.fetcher import Resolve

DEADLINE = timedelta(seconds=5)
MAX_ANSWER = 16 * 1024  # bytes that are read, and thrown away
MAX_URL = 500  # characters
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
FOR_DEVELOPMENT = (
    " For development, the server can be started with WEBHOOKS_TO_LOOPBACK=true to allow this one."
)


class UnusableAddressError(ValueError):
    """Nothing is ever sent there. The text says why."""


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    retry_after: timedelta | None
    """When the server asks to be tried again, where it says so in seconds (RFC 9110 section 10.2.3)."""


def check(url: str) -> SplitResult:
    """The parts of a URL that may be posted to, as far as the URL itself tells.

    Raises:
        UnusableAddressError: It may not.
    """
    if len(url) > MAX_URL:
        raise UnusableAddressError(f"The address has more than {MAX_URL} characters.")
    if not re.fullmatch(r"[\x21-\x7e]+", url) or "\\" in url or "#" in url:
        raise UnusableAddressError("The address must be a plain URL, without spaces and without a # part.")
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port is not None else ""
    except ValueError as exc:
        raise UnusableAddressError("The address is no URL.") from exc
    # No user information, no upper case host, no empty port.
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    if parts.netloc != f"{host}{port}" or parts.port == 0:
        raise UnusableAddressError("The address must name a host in lower case, and no user or password.")
    if _to_loopback(parts):
        return parts
    hint = FOR_DEVELOPMENT if _is_this_machine(parts) else ""
    if parts.scheme != "https":
        raise UnusableAddressError(f"The address must begin with https://.{hint}")
    if not fetcher.HOST.fullmatch(parts.hostname or ""):
        raise UnusableAddressError(f"The address must name its host by a full domain name.{hint}")
    return parts


def post(
    url: str,
    *,
    body: bytes,
    headers: Mapping[str, str],
    resolve: Resolve = fetcher.system_resolve,
    admits: Callable[[str], bool] = fetcher.is_public,
    trust: ssl.SSLContext | None = None,
    deadline: timedelta = DEADLINE,
) -> Answer:
    """Send `body` and return what the server says. Blocks up to `deadline`.

    `resolve`, `admits`, `trust` and `deadline` are for tests.

    Raises:
        UnusableAddressError: Nothing was sent: it is no address that may be posted to.
        OSError: It could not be sent, or was not answered in time.
        http.client.HTTPException: The answer is no HTTP.
    """
    ends = time.monotonic() + deadline.total_seconds()
    parts = check(url)
    addresses = fetcher.resolve_within(resolve, parts, deadline)
    if not addresses:
        raise OSError("the host has no address")
    if _to_loopback(parts):
        admits = _is_loopback
    # All of them, so that a mixed answer cannot be used to reach the private one.
    if not all(map(admits, addresses)):
        raise UnusableAddressError("The host's address is not a public one.")
    secured = None if parts.scheme == "http" else trust or ssl.create_default_context()
    with fetcher.connected(addresses, parts, trust=secured, ends=ends) as line:
        caller = http.client.HTTPConnection(parts.netloc)
        caller.sock = line
        path = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
        caller.request("POST", path, body=body, headers={**_HEADERS, **headers})
        with caller.getresponse() as response:
            response.read(MAX_ANSWER)
            return Answer(response.status, _retry_after(response.headers.get("retry-after", "")))


_HEADERS = {
    "Content-Type": "application/json",
    "Accept-Encoding": "identity",
    "Connection": "close",
    "User-Agent": "confirmhub",
}


def _retry_after(value: str) -> timedelta | None:
    return timedelta(seconds=int(value)) if re.fullmatch(r"[0-9]{1,6}", value.strip()) else None


def _to_loopback(parts: SplitResult) -> bool:
    """Whether it is this machine, and the setting for development lets it be one."""
    return settings.WEBHOOKS_TO_LOOPBACK and _is_this_machine(parts)


def _is_this_machine(parts: SplitResult) -> bool:
    host = parts.netloc.removesuffix(f":{parts.port}")
    return parts.scheme in ("http", "https") and host in LOOPBACK


def _is_loopback(address: str) -> bool:
    return ipaddress.ip_address(address).is_loopback
