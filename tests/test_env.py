"""What the environment may hold: a value that means nothing stops the start, and never means allow."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from confirmhub import env


@pytest.mark.parametrize("read", [env.secret, env.secrets])
@pytest.mark.parametrize("length", [0, 1, 16, 31])
def test_a_secret_of_less_than_32_characters_stops_the_start(
    monkeypatch: pytest.MonkeyPatch, read: Callable[[str], object], length: int
) -> None:
    monkeypatch.setenv("A_KEY", "x" * length)

    with pytest.raises(ImproperlyConfigured, match=r"A_KEY (must|is required)"):
        read("A_KEY")


@pytest.mark.parametrize("lines", ["x" * 32 + "\n" + "y" * 31, ("x" * 32 + "\n") * 2])
def test_one_bad_key_among_good_ones_stops_the_start(monkeypatch: pytest.MonkeyPatch, lines: str) -> None:
    monkeypatch.setenv("KEYS", lines)

    with pytest.raises(ImproperlyConfigured, match="KEYS"):
        env.secrets("KEYS")


def test_keys_are_read_from_a_file_in_their_order(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text("x" * 32 + "\n\n " + "y" * 32 + "\n")
    monkeypatch.setenv("KEYS_FILE", str(file))

    assert env.secrets("KEYS") == ["x" * 32, "y" * 32]


def test_a_file_of_secrets_that_cannot_be_read_stops_the_start(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("A_KEY_FILE", str(tmp_path / "missing"))
    monkeypatch.setenv("A_KEY", "x" * 32)

    with pytest.raises(ImproperlyConfigured, match="cannot be read"):
        env.secret("A_KEY")


@pytest.mark.parametrize("value", ["", "1", "yes", "True", "false "])
def test_a_flag_that_is_neither_true_nor_false_stops_the_start(
    monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("A_FLAG", value)

    with pytest.raises(ImproperlyConfigured, match="'true' or 'false'"):
        env.flag("A_FLAG", default=True)


def test_a_folder_that_is_not_plainly_one_stops_the_start(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "folder")

    for value, says in [
        ("folder", "absolute"),
        (str(tmp_path / "missing"), "is not a folder"),
        (str(tmp_path / "file"), "is not a folder"),
        (str(tmp_path / "link"), "through a link"),
        (f"{tmp_path}/folder:{tmp_path}/link", "through a link"),
        (f"{tmp_path}/folder/", None),
    ]:
        monkeypatch.setenv("FOLDERS", value)
        if says is None:
            assert env.folders("FOLDERS") == [tmp_path / "folder"]
            continue
        with pytest.raises(ImproperlyConfigured, match=says):
            env.folders("FOLDERS")


@pytest.mark.parametrize("value", ["0", "-1", "1.5", "ten", "²", "9999999"])
def test_days_that_are_no_number_of_days_stop_the_start(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("SOME_DAYS", value)

    with pytest.raises(ImproperlyConfigured, match="whole number of days"):
        env.days("SOME_DAYS")


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("http://confirm.example.org", "must be https"),
        ("https://confirm.example.org/", "without a path"),
        ("https://confirm.example.org/hub", "without a path"),
        ("confirm.example.org", "without a path"),
        ("ftp://confirm.example.org", "without a path"),
    ],
)
def test_an_address_that_is_no_safe_origin_stops_the_start(
    monkeypatch: pytest.MonkeyPatch, value: str, says: str
) -> None:
    monkeypatch.setenv("ADDRESS", value)

    with pytest.raises(ImproperlyConfigured, match=says):
        env.origin("ADDRESS", "https://default.example")


@pytest.mark.parametrize(
    "value", ["mysql://a@b/c", "postgresql://a@b", "postgresql://a@b/c?options=-csearch_path%3Devil"]
)
def test_a_database_that_is_not_plainly_one_stops_the_start(
    monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("DATABASE", value)

    with pytest.raises(ImproperlyConfigured, match="postgresql://"):
        env.database("DATABASE")


@pytest.mark.parametrize(
    "value", ["memory://localhost", "redis://h:6379/0", "rediss://h", "amqp://u:p@h//", "amqps://h"]
)
def test_a_broker_of_a_known_kind_is_taken(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("BROKER", value)

    assert env.broker("BROKER", "memory://localhost") == value


@pytest.mark.parametrize("value", ["kafka://h", "redis://", "redis", "://h", "amqp://[h"])
def test_a_broker_of_another_kind_stops_the_start(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("BROKER", value)

    with pytest.raises(ImproperlyConfigured, match="must begin with one of"):
        env.broker("BROKER", "memory://localhost")


@pytest.mark.parametrize("value", ["pass word", "a,,b", "a-b", "\u00e4"])
def test_words_that_are_none_stop_the_start(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("WORDS", value)

    with pytest.raises(ImproperlyConfigured, match="words of letters and digits"):
        env.words("WORDS", "secret")


def test_words_are_read_without_their_case(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORDS", "Token, apiKey")

    assert env.words("WORDS", "secret") == ["token", "apikey"]


@pytest.mark.parametrize(
    "value", ["*", "proxy.example", "10.0.0.1/8", "10.0.0.7;10.0.0.8", "0.0.0.0/0", "::/0"]
)
def test_networks_that_are_none_or_everybody_stop_the_start(
    monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("PROXIES", f"192.0.2.1,{value}")

    with pytest.raises(ImproperlyConfigured, match="addresses or networks"):
        env.networks("PROXIES")


def test_networks_are_read_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROXIES", "10.0.0.7, 10.1.0.0/16,2001:db8::/32,")

    assert env.networks("PROXIES") == ["10.0.0.7", "10.1.0.0/16", "2001:db8::/32"]
    assert env.networks("OTHERS") == []
