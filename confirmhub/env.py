"""Typed readers of environment variables. A bad value stops the start and says what to do."""

from __future__ import annotations

import datetime as dt
import os
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured


def text(name: str, default: str | None = None) -> str:
    """Read a text.

    Raises:
        ImproperlyConfigured: It is not set and has no default.
    """
    value = os.environ.get(name) or default
    if value is None:
        raise ImproperlyConfigured(f"{name} is required. Set it, or start with ./hub up, which does.")
    return value


def flag(name: str, *, default: bool) -> bool:
    """Read `true` or `false`.

    Raises:
        ImproperlyConfigured: It is something else.
    """
    value = os.environ.get(name)
    if value is None:
        return default
    if value not in ("true", "false"):
        raise ImproperlyConfigured(f"{name} must be 'true' or 'false', not {value!r}.")
    return value == "true"


def secret(name: str) -> str:
    """Read a secret from the file named by NAME_FILE, else from NAME itself.

    Raises:
        ImproperlyConfigured: Neither is set, the file cannot be read, or the secret has under 32 characters.
    """
    value = _secret_text(name)
    if len(value) < 32:
        raise ImproperlyConfigured(f"{name} must have at least 32 characters.")
    return value


def secrets(name: str) -> list[str]:
    """Read secrets, one a line, each as `secret` does. The first is in use, the rest are still accepted.

    Raises:
        ImproperlyConfigured: As for `secret`, or one stands there twice.
    """
    values = [line.strip() for line in _secret_text(name).splitlines() if line.strip()]
    if not values or min(map(len, values)) < 32:
        raise ImproperlyConfigured(f"{name} must hold one key a line, each of at least 32 characters.")
    if len(set(values)) != len(values):
        raise ImproperlyConfigured(f"{name} holds the same key twice.")
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
            raise ImproperlyConfigured(f"{name}: {str(path)!r} must be an absolute path.")
        if not path.is_dir():
            raise ImproperlyConfigured(f"{name}: {str(path)!r} is not a folder.")
        if path.resolve(strict=True) != path:
            raise ImproperlyConfigured(
                f"{name}: {str(path)!r} is reached through a link; name {str(path.resolve())!r}."
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
        raise ImproperlyConfigured(f"{name} must be a whole number of days above 0, not {value!r}.")
    return dt.timedelta(days=int(value))


def choice(name: str, values: tuple[str, ...]) -> str:
    """Read one of these; the first when it is not set.

    Raises:
        ImproperlyConfigured: It is something else.
    """
    value = os.environ.get(name) or values[0]
    if value not in values:
        raise ImproperlyConfigured(f"{name} must be one of {', '.join(values)}, not {value!r}.")
    return value


def origin(name: str, default: str) -> str:
    """Read a URL that is an origin alone: scheme, host, perhaps a port; no path, no trailing slash.

    Raises:
        ImproperlyConfigured: It is something else, or plain http to a host that is not this machine.
    """
    value = text(name, default)
    parts = urlsplit(value)
    if (
        parts.scheme not in ("http", "https")
        or not parts.hostname
        or value != f"{parts.scheme}://{parts.netloc}"
    ):
        raise ImproperlyConfigured(
            f"{name} must be like https://confirm.example.org, without a path, not {value!r}."
        )
    if parts.scheme == "http" and parts.hostname not in ("localhost", "127.0.0.1", "::1"):
        raise ImproperlyConfigured(f"{name} must be https: tokens and decisions travel over it.")
    return value


def database(name: str) -> dict[str, str]:
    """Read a Postgres URL into Django's NAME, USER, PASSWORD, HOST and PORT.

    `postgresql://user:password@host:port/name`, and `?host=/folder` for a Unix socket.

    Raises:
        ImproperlyConfigured: It is something else.
    """
    value = text(name)
    parts = urlsplit(value)
    query = dict(parse_qsl(parts.query))
    extra = set(query) - {"host", "sslmode", "sslrootcert"}
    if parts.scheme not in ("postgres", "postgresql") or len(parts.path) < 2 or extra:
        raise ImproperlyConfigured(f"{name} must be like postgresql://user:password@host:5432/name.")
    return {
        "NAME": unquote(parts.path[1:]),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": query.pop("host", parts.hostname or ""),
        "PORT": str(parts.port or ""),
        **query,
    }


def _secret_text(name: str) -> str:
    path = os.environ.get(f"{name}_FILE")
    if not path:
        return text(name).strip()
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as exc:
        raise ImproperlyConfigured(f"{name}_FILE: {path!r} cannot be read: {exc}.") from exc
