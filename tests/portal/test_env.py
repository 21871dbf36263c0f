from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from portal.env import DatabaseURL, Reader, SettingsError, gather, read_env_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def problems(reader: Reader) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        reader.finish()
    return caught.value.problems


def test_unknown_setting_is_named_with_the_one_that_was_meant() -> None:
    reader = Reader({"GATEHOUSE_DATABSE_URL": "x", "HOME": "/"})
    reader.text("GATEHOUSE_DATABASE_URL")
    assert problems(reader) == [
        "GATEHOUSE_DATABSE_URL is not a setting: did you mean GATEHOUSE_DATABASE_URL?"
    ]


def test_unknown_setting_like_no_other_points_at_the_list() -> None:
    assert problems(Reader({"GATEHOUSE_X": "1"})) == [
        "GATEHOUSE_X is not a setting: docs/reference/settings.md lists all"
    ]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GATEHOUSE_SERVICE_HOST", "10.0.0.7"),
        ("GATEHOUSE_SERVICE_PORT_HTTPS", "443"),
        ("GATEHOUSE_PORT", "tcp://10.0.0.7:443"),
        ("GATEHOUSE_PORT_443_TCP_ADDR", "10.0.0.7"),
    ],
)
def test_service_links_of_a_pod_are_no_settings(name: str, value: str) -> None:
    Reader({name: value}).finish()


def test_all_problems_are_reported_at_once() -> None:
    reader = Reader({"GATEHOUSE_A": "maybe", "GATEHOUSE_B": "many", "GATEHOUSE_C": "1"})
    reader.boolean("GATEHOUSE_A", default=False)
    reader.integer("GATEHOUSE_B", 1, lowest=1, highest=9)
    assert len(problems(reader)) == 3


@pytest.mark.parametrize("value", ["true", "1", "YES", "on"])
def test_boolean_is_true(value: str) -> None:
    assert Reader({"A": value}).boolean("A", default=False) is True


@pytest.mark.parametrize("value", ["false", "0", "No", "off"])
def test_boolean_is_false(value: str) -> None:
    assert Reader({"A": value}).boolean("A", default=True) is False


READS: dict[str, Callable[[Reader], object]] = {
    "boolean": lambda r: r.boolean("A", default=True),
    "integer": lambda r: r.integer("A", 5, lowest=1, highest=9),
    "port": lambda r: r.port("A", 8000),
    "choice": lambda r: r.choice("A", "text", "json"),
    "address": lambda r: r.web_address("A", "http://a"),
    "link": lambda r: r.link("A"),
    "broker": lambda r: r.broker("A", "filesystem://", ""),
    "database": lambda r: r.database("A", "sqlite:///x", ""),
}


@pytest.mark.parametrize(
    ("read", "value", "hint"),
    [
        ("boolean", "si", "write true or false"),
        ("integer", "0", "write a number from 1 to 9"),
        ("integer", "10", "write a number from 1 to 9"),
        ("integer", "3.5", "write a number from 1 to 9"),
        ("integer", "\u0663", "write a number from 1 to 9"),
        ("port", "65536", "write a number from 1 to 65535"),
        ("choice", "xml", "write one of text, json"),
        ("address", "gatehouse.example.com", "write it as https://"),
        ("address", "ftp://a", "write it as https://"),
        ("address", "https://a/path", "write it as https://"),
        ("address", "https://a:port", "write it as https://"),
        ("link", "https://a/path", ""),
        ("link", "", ""),
        ("link", "docs.example.com", "write it as https://"),
        ("link", "javascript:alert(1)", "write it as https://"),
        ("link", "https:///path", "write it as https://"),
        ("broker", "amqp://a", "write redis://HOST:6379/0"),
        ("broker", "redis://", "write redis://HOST:6379/0"),
        ("database", "mysql://a/b", "write postgres://"),
        ("database", "postgres://host", "write postgres://"),
        ("database", "postgres:///name", "write postgres://"),
        ("database", "postgres://h:x/name", "write postgres://"),
        ("database", "postgres://h/name?a=b", 'invalid URI query parameter: "a"'),
        ("database", "postgres://h:1,x:y/name", "write postgres://"),
        ("database", "sqlite://x", "write postgres://"),
        ("database", "", ""),
    ],
)
def test_bad_value_is_named_with_a_hint(read: str, value: str, hint: str) -> None:
    reader = Reader({"A": value})
    READS[read](reader)
    if not hint:
        reader.finish()
        return
    (problem,) = problems(reader)
    assert problem.startswith("A ")
    assert hint in problem


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("sqlite:////srv/x.sqlite3", DatabaseURL("sqlite3", "/srv/x.sqlite3")),
        ("sqlite:///x.sqlite3", DatabaseURL("sqlite3", "x.sqlite3")),
        ("postgres://h/n", DatabaseURL("postgresql", "n", "", "kept", "h", "")),
        ("postgresql://u@h:1/n", DatabaseURL("postgresql", "n", "u", "kept", "h", "1")),
        ("postgres://u:p%40ss@h/n", DatabaseURL("postgresql", "n", "u", "p@ss", "h", "")),
        (
            "postgres://u@h/n?sslmode=verify-full&sslrootcert=%2Fetc%2Fca.pem",
            DatabaseURL(
                *("postgresql", "n", "u", "kept", "h", ""),
                {"sslmode": "verify-full", "sslrootcert": "/etc/ca.pem"},
            ),
        ),
        (
            "postgres:///n?host=/run/postgresql",
            DatabaseURL("postgresql", "n", "", "kept", "/run/postgresql", ""),
        ),
        (
            "postgres://%2Frun%2Fpostgresql/n",
            DatabaseURL("postgresql", "n", "", "kept", "/run/postgresql", ""),
        ),
    ],
)
def test_database_address_is_taken_apart(value: str, expected: DatabaseURL) -> None:
    assert Reader({"A": value}).database("A", "sqlite:///x", "kept") == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("redis://h:6379/0", "redis://:p%2Fw@h:6379/0"),
        ("rediss://:own@h/1", "rediss://:own@h/1"),
        ("filesystem://", "filesystem://"),
        ("", "filesystem://"),
    ],
)
def test_broker_address_takes_its_password(value: str, expected: str) -> None:
    assert Reader({"A": value}).broker("A", "filesystem://", "p/w") == expected


@pytest.mark.parametrize("read", ["broker", "database"])
def test_complaint_keeps_the_password_to_itself(read: str) -> None:
    reader = Reader({"A": "bad://user:hunter2@host/"})
    READS[read](reader)
    assert "hunter2" not in problems(reader)[0]


def test_secret_comes_from_its_file_without_the_last_newline(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_bytes(b" word \r\n")
    assert Reader({"A_FILE": str(file)}).secret("A") == " word "


def test_secret_said_twice_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("one")
    reader = Reader({"A": "two", "A_FILE": str(file)})
    reader.secret("A")
    assert problems(reader) == ["A and A_FILE are both set: keep one of them"]


@pytest.mark.parametrize("content", [None, b"\xff\xfe\x00"], ids=["missing", "not text"])
def test_secret_file_that_cannot_be_read_is_named(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "secret"
    if content:
        file.write_bytes(content)
    reader = Reader({"A_FILE": str(file)})
    reader.secret("A")
    assert problems(reader)[0].startswith(f"A_FILE points at {file}: ")


def test_environment_wins_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text("# note\n\nexport A='from file'\nB = \"two\" \nC=it's\n")
    assert read_env_file(file) == {"A": "from file", "B": "two", "C": "it's"}
    assert gather({"A": "said"}, file) == {"A": "said", "B": "two", "C": "it's"}


def test_another_env_file_can_be_named(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("A=1")
    (tmp_path / "other").write_text("A=2")
    named = {"GATEHOUSE_ENV_FILE": str(tmp_path / "other")}
    assert gather(named, tmp_path / ".env")["A"] == "2"


def test_line_of_another_shape_is_named(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text("A=1\nB\n")
    with pytest.raises(SettingsError, match=r"\.env, line 2 is not NAME=value"):
        read_env_file(file)


def test_file_is_seen_from_the_folder_and_must_be_there(tmp_path: Path) -> None:
    (tmp_path / "key").touch()
    reader = Reader({"GATEHOUSE_A": "key", "GATEHOUSE_B": "none", "GATEHOUSE_C": ""})
    assert reader.file("GATEHOUSE_A", tmp_path) == tmp_path / "key"
    assert reader.file("GATEHOUSE_C", tmp_path) is None
    reader.file("GATEHOUSE_B", tmp_path)
    (problem,) = problems(reader)
    assert problem.startswith("GATEHOUSE_B points at none: no such file")
