"""`./hub manage ...`: Django's commands, on the data of `up`, whether it runs or not."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Sequence

from confirmhub.ops import checked, environment, state
from confirmhub.ops.environment import ROOT
from confirmhub.ops.errors import AlreadyRuns
from confirmhub.ops.postgres import Cluster
from confirmhub.ops.up import held, say

URL = "http://localhost:8000"  # where `up` serves unless told otherwise
WAIT = 60.0  # seconds for another command to end


def manage(arguments: Sequence[str]) -> int:
    """Run `manage.py` with `arguments` as the owner of the tables. Returns its exit status.

    Raises:
        CannotStart: The data cannot be used, or a setting is bad.
    """
    home = state.prepare(folder=state.locate())
    if given := environment.given_database():
        _check(home, given.owner_url)
        return _run(home, given.owner_url, arguments, url=URL)
    cluster = Cluster(home.cluster, log=home.logs / "postgres.log")
    owner_url = environment.embedded_database(cluster).owner_url
    _check(home, owner_url)
    if not home.cluster.exists():
        say(f"{home.folder} holds no data yet: ./hub up puts it there")
    deadline = time.monotonic() + WAIT
    while True:
        try:
            with held(home, url="./hub manage"):
                try:
                    cluster.start()
                    return _run(home, owner_url, arguments, url=URL)
                finally:
                    cluster.stop()
        except AlreadyRuns as exc:
            if exc.url and cluster.answers():  # an `up`: its database serves as long as it runs
                return _run(home, owner_url, arguments, url=exc.url)
            # An `up` that is still starting, or another command, whose database ends with it.
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def _check(home: state.State, owner_url: str) -> None:
    checked.check(environment.for_service(home, database_url=owner_url, public_url=URL))


def _run(home: state.State, owner_url: str, arguments: Sequence[str], *, url: str) -> int:
    env = environment.for_service(home, database_url=owner_url, public_url=url)
    # It has the terminal and gets its Ctrl-C; this process only waits for it.
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        command = [sys.executable, str(ROOT / "manage.py"), *arguments]
        return subprocess.call(command, env=env)  # noqa: S603 - the person's own command
    finally:
        signal.signal(signal.SIGINT, handler)
