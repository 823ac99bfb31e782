"""`./hub demo`: a real MCP host in the terminal that asks to delete a file, and cannot do it twice.

It knows nothing of confirmhub but its address: it is the official SDK's client, which signs in through
OAuth, as any host would.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import re
import sys
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp import Client
from mcp.client.auth import OAuthFlowError, OAuthRegistrationError, OAuthTokenError
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult

from confirmhub import display
from confirmhub.ops import state
from confirmhub.ops.demo_host import Refused, connected
from confirmhub.ops.demo_person import AtTheScreen, Person, played
from confirmhub.ops.errors import CannotStart
from confirmhub.ops.up import serving_at

TEXT = "confirmhub demo. This file is deleted once you say so, and not before.\n"

# The exit statuses, besides 0 and argparse's 2.
FAILED, SAID_NO, NOT_IN_TIME, STOPPED = 1, 3, 4, 130

# What a call that was refused ends with, by where its confirmation is then.
_OVER = "nothing was done, and this question is over. Only a new call asks a new question."
_ENDS = {
    "denied": (SAID_NO, f"The no ends it: {_OVER}"),
    "revoked": (SAID_NO, f"The yes was taken back before it was used: {_OVER}"),
    "cancelled": (SAID_NO, f"The question was taken back: {_OVER}"),
    "expired": (NOT_IN_TIME, f"Time ran out before there was a yes to use: {_OVER}"),
}


def main() -> int:
    """Run the demo. Returns the exit status: 0 when what was asked for was done."""
    options = _parse()
    logging.disable()  # the SDK logs what is told here in its own words
    try:
        url = options.url or (f"http://localhost:{options.port}" if options.port else _found())
        call = _call_of(*options.call) if options.call else None
        return asyncio.run(_demo(url.rstrip("/"), auto=options.auto, call=call))
    except KeyboardInterrupt:
        say("\nStopped.")
        return STOPPED
    except Exception as exc:
        problem = _words(exc)
        if problem is None:
            raise
        sys.stderr.write(f"confirmhub: {problem}\n")
        return FAILED


async def _demo(url: str, *, auto: bool, call: tuple[str, dict[str, Any]] | None) -> int:
    await _look_for(url)
    async with _person(auto=auto) as person:
        asked: set[str] = set()

        async def show_sign_in(link: str) -> None:
            more = _scopes(link) - asked
            why = "The host needs your permission. Sign in and allow it here:"
            if asked:
                needed = display.text(", ".join(sorted(more)))
                why = f"This call needs more than you have allowed, {needed}. Allow it here, too:"
            asked.update(more)
            say(f"\n  {why}\n    {display.text(link)}")
            await person.allow(link)

        async def show_page(link: str, message: str) -> None:
            say(f"\n  The server asks to show you a page: {display.text(message)}\n    {display.text(link)}")
            say("  Waiting for your decision ...")
            await person.decide(link)

        step(1, f"Sign in to {url}/mcp")
        async with connected(f"{url}/mcp", show_sign_in=show_sign_in, show_page=show_page) as client:
            tools = (await client.list_tools()).tools
            say(f"\n  Signed in. The server's tools: {', '.join(tool.name for tool in tools)}")
            if call is None:
                return await _walk(client, url)
            step(2, f"Call {call[0]}({display.text(json.dumps(call[1], ensure_ascii=False))})")
            result = await _call(client, *call)
            return await _end(client, url) if result.is_error else 0


def _scopes(link: str) -> set[str]:
    """What a sign-in asks to be allowed (RFC 6749 section 3.3)."""
    return set(" ".join(parse_qs(urlsplit(link).query).get("scope", [])).split())


async def _walk(client: Client, url: str) -> int:
    file = await _make_file(client)
    try:
        step(2, f"The agent calls delete_file({display.text(str(file))})")
        result = await _call(client, "delete_file", {"path": str(file)})
        say(f"  The file is {'still there' if file.exists() else 'gone'}.")
        if result.is_error:
            return await _end(client, url)

        confirmation_id = (result.structured_content or {})["confirmation_id"]
        file.write_text(TEXT, encoding="utf-8")
        step(3, "The file is put back, and the agent tries the same confirmation again")
        replay = await client.call_tool("redeem_confirmation", {"confirmation_id": confirmation_id})
        _show(replay)
        if not replay.is_error or not file.exists():
            raise CannotStart("the replay was not refused; please report this as a bug")
        say("  The file is still there: a yes is for one action, once.")
        say(f"\n  The record: {url}/confirm/{confirmation_id}")
        return 0
    finally:
        file.unlink(missing_ok=True)


async def _call(client: Client, name: str, arguments: dict[str, Any]) -> CallToolResult:
    """Call a tool, wait for as long as a person may take, and show what it answers.

    Where the target changed meanwhile the server has the agent call again, for the person to see the change.
    """
    advice = f"Call {name} again with the same arguments"
    while True:
        result = await _wait(client, name, arguments)
        _show(result)
        if not (result.is_error and advice in _text(result)):
            return result
        say(f"\n  So the agent calls {name} again with the same arguments. Decide on what is there now:")


async def _wait(client: Client, name: str, arguments: dict[str, Any]) -> CallToolResult:
    result = await client.call_tool(name, arguments)
    told = False
    while (data := result.structured_content or {}).get("status") == "waiting_for_person":
        if not told:
            say("  Still waiting; the page is there until the question expires ...")
            told = True
        again = {"confirmation_id": data["confirmation_id"]}
        result = await client.call_tool("redeem_confirmation", again)
    return result


async def _end(client: Client, url: str) -> int:
    """Say what became of the question of a call that was refused. The exit status."""
    listed = await client.call_tool("list_confirmations", {"limit": 1})
    found: list[dict[str, Any]] = (listed.structured_content or {}).get("confirmations", [])
    if not found:
        say("  The server asked nobody.")
        return FAILED
    status, words = _ENDS.get(found[0]["status"], (FAILED, ""))
    if words:
        say(f"  {words}")
    if found[0]["status"] != "expired":  # what nobody decided in time has no page
        say(f"\n  The record: {url}/confirm/{found[0]['confirmation_id']}")
    return status


async def _look_for(url: str) -> None:
    """Find confirmhub at this address, under this name."""
    wanted = f"{url}/mcp"
    async with httpx2.AsyncClient(timeout=10) as http:
        try:
            answer = await http.get(f"{url}/.well-known/oauth-protected-resource/mcp")
        except (httpx2.HTTPError, httpx2.InvalidURL) as exc:
            raise CannotStart(
                f"nothing answers at {url}. Start it in another terminal with ./hub up,"
                " or give its --port or --url"
            ) from exc
    try:
        resource = answer.json()["resource"]
    except (ValueError, KeyError, TypeError) as exc:
        raise CannotStart(
            f"what answers at {url} is not confirmhub, or goes by another name there; say its own: --url"
        ) from exc
    if resource != wanted:
        raise CannotStart(
            f"confirmhub at {url} is known as {display.text(str(resource))}; use that with --url"
        )


@asynccontextmanager
async def _person(*, auto: bool) -> AsyncIterator[Person]:
    if not auto:
        yield AtTheScreen()
        return
    async with played() as person:
        yield person


async def _make_file(client: Client) -> Path:
    """A new file in the first folder that is open to the file tools."""
    listed = await client.call_tool("list_files", {})
    if listed.is_error or not listed.structured_content:
        raise CannotStart(_text(listed))
    folder = Path(listed.structured_content["entries"][0]["path"])
    file = folder / f"demo-{uuid.uuid4().hex[:8]}.txt"
    try:
        file.write_text(TEXT, encoding="utf-8")
    except OSError as exc:
        raise CannotStart(
            f"the demo cannot make a file in {folder}: {os.strerror(exc.errno or 0)}. "
            "Run it on the server's machine, as the user that runs ./hub up"
        ) from exc
    return file


def _show(result: CallToolResult) -> None:
    # The SDK puts the tool's name before a refusal; what was called is said above.
    text = re.sub(r"^Error executing tool \w+: ", "", _text(result))
    say(f"\n  {'Refused' if result.is_error else 'Answer'}: {text}")


def _text(result: CallToolResult) -> str:
    lines = (block.text for block in result.content if block.type == "text")
    # What a server sends is not ours: one line each, with nothing hidden.
    return "\n    ".join(display.text(line) for text in lines for line in text.splitlines())


def _words(exc: BaseException) -> str | None:
    """What a person is told of a failure that can be expected; None for a bug."""
    for cause in _causes(exc):
        match cause:
            case CannotStart():
                return str(cause)
            case Refused():
                return f"the host was not allowed to act: {display.text(str(cause))}"
            case OAuthFlowError() | OAuthRegistrationError() | OAuthTokenError():
                return f"the sign-in failed: {display.short(str(cause), 300)}"
            case MCPError():
                return f"the server refused: {display.short(str(cause), 300)}"
            case httpx2.HTTPError():
                return "the connection was lost; is ./hub up still running?"
    return None


def _causes(exc: BaseException) -> Iterator[BaseException]:
    """The exceptions inside of groups, and what each was raised from; the ones that say most come first."""
    if isinstance(exc, BaseExceptionGroup):
        found = [cause for inner in exc.exceptions for cause in _causes(inner)]
        yield from sorted(found, key=lambda cause: not isinstance(cause, CannotStart | Refused))
        return
    yield exc
    if (before := exc.__cause__ or exc.__context__) is not None:
        yield from _causes(before)


def step(number: int, text: str) -> None:
    """Announce the next part."""
    say(f"\n{number}  {text}")


def say(text: str) -> None:
    """Print at once, also into a pipe."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _found() -> str:
    """Where the `up` of this machine's state folder serves, else where it would."""
    return serving_at(state.locate()) or "http://localhost:8000"


def _call_of(name: str, text: str) -> tuple[str, dict[str, Any]]:
    try:
        arguments = json.loads(text)
    except (ValueError, RecursionError):
        arguments = None
    if not isinstance(arguments, dict):
        raise CannotStart('--call needs a tool and its arguments as JSON, such as: list_files "{}"')
    return name, arguments


def _parse() -> argparse.Namespace:
    # Unabbreviated: the launcher, too, looks for --auto.
    parser = argparse.ArgumentParser(
        prog="./hub demo",
        description=(__doc__ or "").partition("\n")[0],
        epilog=(
            f"Exit status: 0 it was done; {FAILED} it could not be; {SAID_NO} the answer was no;"
            f" {NOT_IN_TIME} nobody answered in time; {STOPPED} stopped by Ctrl-C."
        ),
        allow_abbrev=False,
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--url", help="where confirmhub is (where the ./hub up that is running says)")
    where.add_argument("--port", help="the same, by its port on this machine")
    parser.add_argument(
        "--call", nargs=2, metavar=("TOOL", "JSON"), help="call this tool instead, with these arguments"
    )
    parser.add_argument("--auto", action="store_true", help="play the person, too, in a headless browser")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
