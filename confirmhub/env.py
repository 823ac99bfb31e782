"""Typed readers of environment variables. A bad value stops the start and says what to do."""

from __future__ import annotations

import datetime as dt
import ipaddress
import os
from pathlib import Path
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

BROKERS = ("memory", "redis", "rediss", "amqp", "amqps")
STATEMENT = 10  # seconds that a statement may run, in Postgres
# A database that has fallen silent, after a fail-over or behind a router that forgot the connection, resets
# nothing: without these a connection to it waits for hours. libpq ignores them on Unix sockets.
CONNECTION = {
    "connect_timeout": 5,  # seconds, for each address
    "keepalives_idle": 10,  # seconds
    "keepalives_interval": 5,  # seconds
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,  # milliseconds
}
_NEW_KEY = "python3 -c 'import secrets; print(secrets.token_urlsafe(48))'"


def text(name: str, default: str | None = None) -> str:
    """Read a text.

    Raises:
        ImproperlyConfigured: It is not set and has no default.
    """
    value = os.environ.get(name) or default
    if value is None:
        raise ImproperlyConfigured(f"{name} is required: set it, or start with ./hub up, which does.")
    return value


def given(name: str) -> bool:
    """Whether it is set, by itself or by a file."""
    return bool(os.environ.get(name) or os.environ.get(f"{name}_FILE"))


def flag(name: str, *, default: bool) -> bool:
    """Read `true` or `false`.

    Raises:
        ImproperlyConfigured: It is something else.
    """
    value = os.environ.get(name)
    if value is None:
        return default
    if value not in ("true", "false"):
        raise ImproperlyConfigured(
            f"{name} must be 'true' or 'false', not {value!r}: set one of them, or unset it."
        )
    return value == "true"


def secret(name: str) -> str:
    """Read a secret from the file named by NAME_FILE, else from NAME itself.

    Raises:
        ImproperlyConfigured: Neither is set, the file cannot be read, or the secret has under 32 characters.
    """
    value = _secret_text(name)
    if len(value) < 32:
        raise ImproperlyConfigured(f"{name} must have at least 32 characters: make one with {_NEW_KEY}")
    return value


def secrets(name: str) -> list[str]:
    """Read secrets, one a line, each as `secret` does. The first is in use, the rest are still accepted.

    Raises:
        ImproperlyConfigured: As for `secret`, or one stands there twice.
    """
    values = [line.strip() for line in _secret_text(name).splitlines() if line.strip()]
    if not values or min(map(len, values)) < 32:
        raise ImproperlyConfigured(
            f"{name} must hold one key a line, each of at least 32 characters: make one with {_NEW_KEY}"
        )
    if len(set(values)) != len(values):
        raise ImproperlyConfigured(f"{name} holds the same key twice: leave one of them out.")
    return values


def folders(name: str) -> list[Path]:
    """Read absolute folders, separated as PATH is; none when it is not set.

    A folder that is missing, is no folder, or is reached through a link stops the start: it decides what may
    be deleted.

    Raises:
        ImproperlyConfigured: One of them is not as said.
    """
    paths = [Path(part) for part in os.environ.get(name, "").split(os.pathsep) if part]
    for path in paths:
        if not path.is_absolute():
            raise ImproperlyConfigured(
                f"{name}: {str(path)!r} must be an absolute path: begin it with a slash."
            )
        if not path.is_dir():
            raise ImproperlyConfigured(
                f"{name}: {str(path)!r} is not a folder: make that folder, or name one that is there."
            )
        if path.resolve(strict=True) != path:
            raise ImproperlyConfigured(
                f"{name}: {str(path)!r} is reached through a link: name {str(path.resolve())!r} instead."
            )
    return paths


def days(name: str) -> dt.timedelta | None:
    """Read a whole number of days, at least 1; None when it is not set.

    Raises:
        ImproperlyConfigured: It is something else.
    """
    value = os.environ.get(name)
    if not value:
        return None
    if not (value.isascii() and value.isdigit() and int(value[:6]) > 0 and len(value) <= 6):
        raise ImproperlyConfigured(
            f"{name} must be a whole number of days above 0, not {value!r}: set one, or unset it."
        )
    return dt.timedelta(days=int(value))


def choice(name: str, values: tuple[str, ...]) -> str:
    """Read one of these; the first when it is not set.

    Raises:
        ImproperlyConfigured: It is something else.
    """
    value = os.environ.get(name) or values[0]
    if value not in values:
        raise ImproperlyConfigured(
            f"{name} must be one of {', '.join(values)}, not {value!r}: set one of them, or unset it."
        )
    return value


def port(name: str, default: int) -> int:
    """Read a port.

    Raises:
        ImproperlyConfigured: It is not a number from 1 to 65535.
    """
    value = os.environ.get(name)
    if not value:
        return default
    if not (value.isascii() and value.isdigit() and len(value) <= 5 and 0 < int(value) < 65536):
        raise ImproperlyConfigured(
            f"{name} must be a number from 1 to 65535, not {value!r}: set one, or unset it for {default}."
        )
    return int(value)


def modules(name: str, default: str) -> list[str]:
    """Read the names of Python modules, separated by commas.

    Raises:
        ImproperlyConfigured: One of them can be no module's name.
    """
    value = text(name, default)
    found = [part.strip() for part in value.split(",")]
    for module in found:
        if not all(part.isidentifier() for part in module.split(".")):
            raise ImproperlyConfigured(
                f"{name} must be modules separated by commas, such as {default},my_tools, not {value!r}:"
                f" correct {module!r}."
            )
    return found


def words(name: str, default: str) -> list[str]:
    """Read words of ASCII letters and digits, separated by commas.

    Raises:
        ImproperlyConfigured: One of them is something else.
    """
    value = text(name, default)
    found = [part.strip().casefold() for part in value.split(",")]
    for word in found:
        if not (word.isascii() and word.isalnum()):
            raise ImproperlyConfigured(
                f"{name} must be words of letters and digits separated by commas, such as {default}: correct"
                f" {word!r}."
            )
    return found


def networks(name: str) -> list[str]:
    """Read IP addresses and networks, separated by commas; none when it is not set.

    Raises:
        ImproperlyConfigured: One of them is something else, or all addresses that there are.
    """
    found = [part.strip() for part in os.environ.get(name, "").split(",") if part.strip()]
    for network in found:
        try:
            known = ipaddress.ip_network(network).prefixlen > 0
        except ValueError:
            known = False
        if not known:
            raise ImproperlyConfigured(
                f"{name} must be addresses or networks separated by commas, such as 10.0.0.7,10.1.0.0/16:"
                f" correct {network!r}, or unset it."
            )
    return found


def broker(name: str, default: str) -> str:
    """Read the URL of a message broker of a kind that was tried.

    Raises:
        ImproperlyConfigured: It is another, or no URL.
    """
    value = text(name, default)
    scheme = value.partition("://")[0]
    if scheme not in BROKERS or not (parts := _split(value)) or not parts.hostname:
        # Not the value: a broker's URL holds its password.
        raise ImproperlyConfigured(
            f"{name} must begin with one of {', '.join(f'{known}://' for known in BROKERS)} and name a host,"
            " such as redis://localhost:6379/0 or amqp://user:password@localhost:5672/: correct it, or unset"
            " it for the broker that is built in."
        )
    return value


def origin(name: str, default: str) -> str:
    """Read a URL that is an origin alone: scheme, host, perhaps a port; no path, no trailing slash.

    Raises:
        ImproperlyConfigured: It is something else, or plain http to a host that is not this machine.
    """
    value = text(name, default)
    parts = _split(value)
    if (
        not parts
        or parts.scheme not in ("http", "https")
        or not parts.hostname
        or value != f"{parts.scheme}://{parts.netloc}"
    ):
        raise ImproperlyConfigured(
            f"{name} must be like https://confirm.example.org, without a path, not {value!r}:"
            " set it to where people and hosts reach confirmhub."
        )
    if parts.scheme == "http" and parts.hostname not in ("localhost", "127.0.0.1", "::1"):
        raise ImproperlyConfigured(
            f"{name} must be https, not {value!r}, since tokens and decisions travel over it: put a proxy"
            " with TLS before confirmhub, and name its address."
        )
    return value


def database(name: str) -> dict[str, str]:
    """Read a Postgres URL into Django's NAME, USER, PASSWORD, HOST and PORT.

    `postgresql://user:password@host:port/name`, and `?host=/folder` for a Unix socket.

    Raises:
        ImproperlyConfigured: It is something else.
    """
    value = text(name)
    parts = _split(value)
    query = dict(parse_qsl(parts.query)) if parts else {}
    extra = set(query) - {"host", "sslmode", "sslrootcert"}
    if not parts or parts.scheme not in ("postgres", "postgresql") or len(parts.path) < 2 or extra:
        raise ImproperlyConfigured(
            f"{name} must be like postgresql://user:password@host:5432/name: correct it."
        )
    return {
        "NAME": unquote(parts.path[1:]),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": query.pop("host", parts.hostname or ""),
        "PORT": str(parts.port or ""),
        **query,
    }


def _split(value: str) -> SplitResult | None:
    try:
        parts = urlsplit(value)
        _ = parts.port  # read now, since it is what may be no number
    except ValueError:
        return None
    return parts


def _secret_text(name: str) -> str:
    path = os.environ.get(f"{name}_FILE")
    if not path:
        return text(name).strip()
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as exc:
        raise ImproperlyConfigured(
            f"{name}_FILE: {path!r} cannot be read ({exc}): name a file that this user can read."
        ) from exc
