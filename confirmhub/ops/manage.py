"""`./hub manage ...`: Django's commands, on the data of `up`, whether it runs or not."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Sequence

from confirmhub.ops import environment, state
from confirmhub.ops.environment import ROOT
from confirmhub.ops.postgres import Cluster
from confirmhub.ops.up import held


def manage(arguments: Sequence[str]) -> int:
    """Run `manage.py` with `arguments` as the owner of the tables. Returns its exit status.

    Raises:
        CannotStart: The data cannot be used.
    """
    home = state.prepare(folder=state.locate())
    if given := environment.given_database():
        return _run(home, given.owner_url, arguments)
    cluster = Cluster(home.cluster, log=home.logs / "postgres.log")
    database = environment.embedded_database(cluster)
    if cluster.answers():  # `up` runs it
        return _run(home, database.owner_url, arguments)
    with held(home, url="./hub manage"):
        try:
            cluster.start()
            return _run(home, database.owner_url, arguments)
        finally:
            cluster.stop()


def _run(home: state.State, owner_url: str, arguments: Sequence[str]) -> int:
    url = "http://localhost:8000"
    env = environment.for_service(home, database_url=owner_url, public_url=url)
    # It has the terminal and gets its Ctrl-C; this process only waits for it.
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        command = [sys.executable, str(ROOT / "manage.py"), *arguments]
        return subprocess.call(command, env=env)  # noqa: S603 - the person's own command
    finally:
        signal.signal(signal.SIGINT, handler)
