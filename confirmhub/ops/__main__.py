"""`python -m confirmhub.ops up` and `python -m confirmhub.ops manage ...`, as `./hub` calls them."""

from __future__ import annotations

import argparse
import sys

from confirmhub.ops.errors import CannotStart
from confirmhub.ops.manage import manage
from confirmhub.ops.up import say, up


def main() -> int:
    """Run the command. Returns the exit status."""
    command = sys.argv[1:]
    try:
        if command[:1] == ["manage"]:  # not argparse's: what follows is Django's to read
            return manage(command[1:])
        options = _parse(command)
        up(host=options.host, port=options.port)
    except CannotStart as exc:
        say(str(exc))
        return 1
    return 0


def _parse(command: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./hub", description="Run confirmhub.")
    verbs = parser.add_subparsers(required=True, metavar="up")
    verb = verbs.add_parser("up", help="start the service, until Ctrl-C")
    verb.add_argument("--port", type=_port, default=8000, help="where it listens (8000)")
    verb.add_argument("--host", default="", help="an address to listen on (this machine only)")
    return parser.parse_args(command)


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 65536):
        raise argparse.ArgumentTypeError("a port is a number from 1 to 65535")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
