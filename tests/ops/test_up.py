"""`./hub up` as a person meets it, and what becomes of it when its parts are killed."""

from __future__ import annotations

import json
import os
import pwd
import re
import signal
import socket
import stat
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from confirmhub.ops import roles
from tests.ops.service import ROOT, Service, alive, kill, wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="asks /proc, and needs PR_SET_PDEATHSIG")

type Up = Callable[..., Service]


def url(service: Service, role: str) -> str:
    return f"postgresql://{role}@/{roles.DATABASE}?host={service.state}/pg/run"


def administrators(service: Service) -> list[str]:
    with psycopg.connect(url(service, roles.SERVICE)) as connection:
        return [name for (name,) in connection.execute("SELECT username FROM auth_user")]


def manage(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "confirmhub.ops", "manage", *arguments],
        cwd=ROOT,
        env={
            "CONFIRMHUB_STATE": str(folder / "state"),
            "DJANGO_SUPERUSER_PASSWORD": "long enough for anybody",
            "PATH": os.environ["PATH"],
        },
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def test_a_first_start_serves_and_keeps_its_secrets_to_itself(up_new: Up, new: Path) -> None:
    service = up_new().wait_until_ready()

    # It says whose data it takes before it does anything.
    user = pwd.getpwuid(os.geteuid()).pw_name
    assert service.text.startswith(f"confirmhub: starting on new data in {new}/state, as {user}; set CONF")

    # The one-time password stands on the screen and nowhere else.
    password = re.search(r"admin +password (\S+)", service.text)
    assert password is not None
    assert administrators(service) == ["admin"]
    files = [path for path in (new / "state").rglob("*") if path.is_file()]
    assert [path for path in files if password[1].encode() in path.read_bytes()] == []

    # Nobody else can enter, and the secrets are their owner's alone even so.
    assert stat.S_IMODE((new / "state").stat().st_mode) == 0o700
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (new / "state/secrets").iterdir()}
    assert modes == {0o600}

    # What serves cannot rewrite the log of events, nor touch a table.
    forbidden = (
        "UPDATE confirmations_event SET kind = 'x'",
        "DELETE FROM confirmations_event",
        "TRUNCATE confirmations_event",
        "DELETE FROM confirmations_confirmation",
        "ALTER TABLE confirmations_event DISABLE TRIGGER ALL",
        "DROP TABLE confirmations_event",
        "CREATE TABLE mine (id int)",
        f"SET ROLE {roles.OWNER}",
    )
    for statement in forbidden:
        with (
            psycopg.connect(url(service, roles.SERVICE)) as connection,
            pytest.raises(psycopg.errors.InsufficientPrivilege),
        ):
            connection.execute(statement)

    # It listens on this machine alone, and Postgres on no port at all.
    with pytest.raises(OSError, match="refused"), socket.create_connection(("127.0.0.2", service.port)):
        pass
    with psycopg.connect(url(service, roles.OWNER)) as connection:
        assert connection.execute("SHOW listen_addresses").fetchone() == ("",)

    # Django's commands work on its data while it runs.
    made = manage(new, "createsuperuser", "--noinput", "--username=second", "--email=second@example.org")
    assert made.communicate(timeout=90)[0] == "Superuser created successfully.\n"
    assert sorted(administrators(service)) == ["admin", "second"]

    # A second start on the same data says so, and harms nothing.
    second = up_new()
    assert second.wait_for_end() == 1
    assert len(second.said) == 1
    assert f"http://localhost:{service.port}" in second.text
    assert service.healthy()


def test_a_part_that_is_killed_is_started_again_and_health_says_which(up_kept: Up) -> None:
    service = up_kept().wait_until_ready()
    before, people = service.parts(), administrators(service)
    assert set(before) == {"web", "worker", "beat", "postgres"}

    # Stopped, not killed: so it cannot come back before it was asked about.
    os.kill(before["postgres"], signal.SIGSTOP)
    for pid in service.everything() - set(before.values()):
        os.kill(pid, signal.SIGSTOP)
    with pytest.raises(urllib.error.HTTPError) as refused:
        wait_until(lambda: not service_is_ready(service))
    assert refused.value.code == 503
    assert json.load(refused.value)["missing"][0] == "database"

    kill(*service.everything())
    wait_until(lambda: set(service.parts()) == set(before) and not any(map(alive, before.values())))
    wait_until(service.healthy)

    assert set(service.parts().values()).isdisjoint(before.values())
    assert administrators(service) == people


def service_is_ready(service: Service) -> bool:
    with urllib.request.urlopen(f"http://127.0.0.1:{service.port}/healthz", timeout=10) as answer:
        return bool(answer.status == 200)


def test_no_orphan_is_left_and_no_data_lost_whatever_is_killed(up_kept: Up) -> None:
    first = up_kept().wait_until_ready()
    below, people = first.everything(), administrators(first)
    assert "admin" in people
    assert len(below) > 4

    first.process.kill()
    first.wait_for_end()
    wait_until(lambda: not any(map(alive, below)))

    second = up_kept().wait_until_ready()
    assert administrators(second) == people
    assert "password of the first start" in second.text
    # All at once, as when the machine loses power: the lock and postmaster.pid stay behind.
    everything = {second.process.pid, *second.everything()}
    kill(*everything)
    second.wait_for_end()
    wait_until(lambda: not any(map(alive, everything)))

    third = up_kept().wait_until_ready()
    assert administrators(third) == people
    below = third.everything()
    started = time.monotonic()
    third.process.send_signal(signal.SIGINT)
    assert third.wait_for_end() == 0
    assert time.monotonic() - started < 5
    assert not any(map(alive, below))


def test_two_commands_at_once_wait_for_each_other(folder: Path) -> None:
    both = [manage(folder, "version"), manage(folder, "hub", "verify")]

    said = [process.communicate(timeout=90) for process in both]

    assert [process.returncode for process in both] == [0, 1], said
    # The second finds none of our tables, and says so without a trace.
    assert any("holds no data yet" in err for _, err in said)
    assert said[1][1].splitlines()[-1].startswith("CommandError: This database does not have the tables of")
    assert "Traceback" not in said[1][1]


def test_a_busy_port_is_one_line_that_says_what_to_do(up: Up) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        service = up(port=port)

        assert service.wait_for_end() == 1
    assert service.said == [
        f"confirmhub: Port {port} is in use: stop what uses it, or choose another with --port {port + 1}.\n"
    ]


@pytest.mark.skipif(not socket.has_ipv6, reason="this machine has no IPv6")
def test_a_port_that_somebody_has_on_the_other_loopback_address_is_busy(up: Up) -> None:
    # A browser that asks for localhost there would be served by them, and take it for us.
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as taken:
        port = taken.getsockname()[1]

        service = up(port=port)

        assert service.wait_for_end() == 1
    assert f"Port {port} is in use" in service.text


def test_an_address_of_another_machine_is_one_line_that_says_what_to_do(up: Up) -> None:
    service = up("--host", "203.0.113.7")

    assert service.wait_for_end() == 1
    assert service.said == ["confirmhub: 203.0.113.7 is no address of this machine: choose another --host.\n"]
