"""Fetch a client id metadata document: one request to an address of a stranger's choosing.

So: https, a public address that was resolved once and is then the one dialled, no redirects, no
proxy from the environment, a cap on size, and one hard deadline over name, connection, headers
and body. Every failure is the same error; the reason goes to the log only.
"""

from __future__ import annotations

import contextlib
import http.client
import ipaddress
import logging
import queue
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from urllib.parse import SplitResult

from confirmhub.oauth import metadata, redirects

log = logging.getLogger(__name__)

DEADLINE = timedelta(seconds=5)
DIAL = 2.0  # seconds for one address; then the next is tried
MAX_BYTES = 16 * 1024  # the draft recommends to accept 5 KB
MAX_URL = 255  # characters, as the column
FRESH_AT_LEAST = timedelta(minutes=5)
FRESH_AT_MOST = timedelta(days=1)

# A DNS name whose last label begins with a letter: no address in any spelling, and no bare name.
HOST = re.compile(r"(?=.{1,253}$)([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)+[a-z]([a-z0-9-]*[a-z0-9])?")
_PATH = re.compile(r"(/[A-Za-z0-9._~!$&'()*+,;=:@%-]*)+")
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
# All that is given out on the internet (RFC 4291 section 2.4). What is not, a site may use inside of it, as
# some still do with the site-local addresses of old, which Python takes for global.
_UNICAST = ipaddress.ip_network("2000::/3")
_MAX_AGE = re.compile(r"max-age\s*=\s*\"?(\d{1,9})")

type Resolve = Callable[[str, int], list[str]]


class UnverifiedClientError(Exception):
    """The document could not be had, or is not good. Says no more, so that nobody can probe."""


@dataclass(frozen=True, slots=True)
class Document:
    metadata: metadata.Metadata
    fresh_for: timedelta


def is_document_url(client_id: str) -> bool:
    """Whether `client_id` is a URL that could hold a metadata document.

    Stricter than the draft where two spellings of one URL would make two clients.
    """
    return _parts(client_id) is not None


def is_public(address: str) -> bool:
    """Whether `address` is one that anybody on the internet could reach as well as we."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed in _NAT64:  # how an IPv6-only network reaches the IPv4 address inside
            parsed = ipaddress.IPv4Address(int(parsed) & 0xFFFFFFFF)
        elif parsed not in _UNICAST or parsed.sixtofour or parsed.teredo:
            return False
    return parsed.is_global and not parsed.is_multicast


def system_resolve(host: str, port: int) -> list[str]:
    """The addresses of `host`, as the system knows them."""
    found = socket.getaddrinfo(host, port, proto=socket.IPPROTO_TCP)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def fetch(
    client_id: str,
    *,
    resolve: Resolve = system_resolve,
    admits: Callable[[str], bool] = is_public,
    trust: ssl.SSLContext | None = None,
    deadline: timedelta = DEADLINE,
) -> Document:
    """The metadata that `client_id`, a document's URL, stands for. Blocks up to `deadline`.

    The keyword arguments are for tests; production calls it with the URL alone.

    Raises:
        UnverifiedClientError: There is no such document, or it is not usable.
    """
    ends = time.monotonic() + deadline.total_seconds()
    try:
        parts = _parts(client_id)
        if parts is None:
            raise ValueError("not a document URL")  # noqa: TRY301 - one way out for all
        addresses = resolve_within(resolve, parts, deadline)
        # All of them, so that a mixed answer cannot be used to reach the private one.
        if not addresses or not all(map(admits, addresses)):
            raise ValueError("not a public address")  # noqa: TRY301 - as above
        body, caching = _get(addresses, parts, trust or ssl.create_default_context(), ends)
        fields = metadata.parse(body)
        # The draft, section 4: this binds what it says to where it stands.
        if fields.get("client_id") != client_id:
            raise ValueError("the document is another client's")  # noqa: TRY301 - as above
        return Document(metadata.read(fields, is_document=True), _freshness(caching))
    except (
        ValueError,
        OSError,  # TimeoutError and ssl.SSLError, too
        http.client.HTTPException,
        metadata.UnusableMetadataError,
    ) as error:
        log.info("No client metadata from %r: %s: %s", client_id, type(error).__name__, error)
        raise UnverifiedClientError from error


def _parts(client_id: str) -> SplitResult | None:
    printable = client_id.isascii() and client_id.isprintable()
    if len(client_id) > MAX_URL or not printable or not client_id.startswith("https://"):
        return None
    parts = redirects.split(client_id)
    if parts is None or not HOST.fullmatch(parts.hostname or "") or parts.path in ("", "/"):
        return None
    port = f":{parts.port}" if parts.port is not None else ""
    # No user information, no upper case host, no empty or default port.
    if parts.netloc != f"{parts.hostname}{port}" or "#" in client_id or parts.port in (0, 443):
        return None
    segments = parts.path.lower().replace("%2e", ".").split("/")
    if not _PATH.fullmatch(parts.path) or "." in segments or ".." in segments:
        return None
    return parts if re.fullmatch(r"[\x21-\x7e]*", parts.query) else None


def resolve_within(resolve: Resolve, parts: SplitResult, within: timedelta) -> list[str]:
    """The addresses of the host of `parts`; none where it has none.

    Raises:
        TimeoutError: It took longer.
    """
    # In a thread of its own, since the system's resolver cannot be told to give up.
    box: queue.SimpleQueue[list[str]] = queue.SimpleQueue()

    def look_up() -> None:
        try:
            box.put(resolve(parts.hostname or "", parts.port or 443))
        except (OSError, ValueError):
            box.put([])

    threading.Thread(target=look_up, daemon=True).start()
    try:
        return box.get(timeout=within.total_seconds())
    except queue.Empty:
        raise TimeoutError("the name server does not answer") from None


def _get(addresses: list[str], parts: SplitResult, trust: ssl.SSLContext, ends: float) -> tuple[bytes, str]:
    """The body and the Cache-Control header of one GET; over by `ends`, a time of the monotonic clock."""
    with connected(addresses, parts, trust=trust, ends=ends) as tls:
        return _ask(tls, parts)


@contextlib.contextmanager
def connected(
    addresses: list[str], parts: SplitResult, *, trust: ssl.SSLContext | None, ends: float
) -> Iterator[socket.socket]:
    """A connection to one of these addresses, for one request to `parts`; without `trust` it is not secured.

    It is over by `ends`, a time of the monotonic clock.

    Raises:
        OSError: There is none, it is not the host's, or the time is over.
    """
    default = 443 if parts.scheme == "https" else 80
    with _dial(addresses, parts.port or default, ends) as raw, raw.dup() as line:
        # A timeout of a socket starts again with every byte, so a second thread hangs up when time is over.
        watchdog = threading.Timer(_left(ends), _hang_up, [line])
        watchdog.start()
        try:
            if trust is None:
                yield raw
            else:
                # The certificate must be the name's, though the address is dialled.
                with trust.wrap_socket(raw, server_hostname=parts.hostname) as tls:
                    yield tls
        finally:
            watchdog.cancel()
    _left(ends)  # what was read may end where we hung up


def _dial(addresses: list[str], port: int, ends: float) -> socket.socket:
    for address in addresses[:3]:
        try:
            connection = socket.create_connection((address, port), timeout=min(_left(ends), DIAL))
        except OSError as error:
            log.debug("No connection to %s: %s", address, error)
        else:
            connection.settimeout(_left(ends))
            return connection
    raise TimeoutError("no connection")


def _ask(tls: socket.socket, parts: SplitResult) -> tuple[bytes, str]:
    caller = http.client.HTTPConnection(parts.netloc)
    caller.sock = tls
    headers = {
        "Accept": "application/json, application/*+json",
        "Accept-Encoding": "identity",
        "Connection": "close",
        "User-Agent": "confirmhub",
    }
    caller.request("GET", f"{parts.path}?{parts.query}" if parts.query else parts.path, headers=headers)
    with caller.getresponse() as response:
        _check_headers(response)
        body = response.read(MAX_BYTES + 1)
        if len(body) > MAX_BYTES:
            raise ValueError("too large")
        return body, response.headers.get("cache-control", "")


def _check_headers(response: http.client.HTTPResponse) -> None:
    if response.status != 200:
        raise ValueError(f"status {response.status}")
    kind = response.headers.get("content-type", "").split(";")[0].strip().lower()
    if not re.fullmatch(r"application/([a-z0-9.-]+\+)?json", kind):
        raise ValueError("not JSON")
    if response.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise ValueError("compressed")


def _hang_up(line: socket.socket) -> None:
    with contextlib.suppress(OSError):  # it ended by itself at the same moment
        line.shutdown(socket.SHUT_RDWR)


def _left(ends: float) -> float:
    left = ends - time.monotonic()
    if left <= 0:
        raise TimeoutError("too slow")
    return left


def _freshness(cache_control: str) -> timedelta:
    lowered = cache_control.lower()
    if "no-store" in lowered or "no-cache" in lowered:
        return FRESH_AT_LEAST
    found = _MAX_AGE.search(lowered)
    stated = timedelta(seconds=int(found[1])) if found else FRESH_AT_MOST
    return min(max(stated, FRESH_AT_LEAST), FRESH_AT_MOST)
