"""What `./hub up` prints when all is ready: one screen, and nothing on it that is not of use."""

from __future__ import annotations

import json
import os
import shlex

from confirmhub.ops.state import VARIABLE, State

ADMINISTRATOR = "admin"


def ready(*, url: str, password: str | None, state: State) -> str:
    """Return the screen. `password` is the administrator's, at the first start only."""
    mcp = f"{url}/mcp"
    # In another terminal the variable is not set.
    hub = f"{VARIABLE}={shlex.quote(str(state.folder))} ./hub" if os.environ.get(VARIABLE) else "./hub"
    vs_code = json.dumps({"name": "confirmhub", "type": "http", "url": mcp}, separators=(",", ":"))
    return f"""
confirmhub is ready at {url}

  Sign in       {sign_in(password, hub=hub)}

  Connect your host
    Claude Code   claude mcp add --transport http confirmhub {mcp}
    VS Code       code --add-mcp {shlex.quote(vs_code)}
    Codex         codex mcp add confirmhub --url {mcp} && codex mcp login confirmhub
    Inspector     npx @modelcontextprotocol/inspector --transport http --protocol-era auto --server-url {mcp}

  See it work   {hub} demo
  Data          {state.folder}
  Logs          {state.logs} (web, worker, beat, postgres, prepare)
  Mail          {state.mail} (written there until EMAIL_HOST is set)
  Stop          Ctrl-C
"""


def sign_in(password: str | None, *, hub: str = "./hub") -> str:
    """Return how the administrator signs in."""
    if password is None:
        return (
            f"{ADMINISTRATOR}, with the password of the first start"
            f" (a new one: {hub} manage changepassword {ADMINISTRATOR})"
        )
    return f"{ADMINISTRATOR}   password {password}   (shown this once)"
