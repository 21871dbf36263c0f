"""Typed readers of GATEHOUSE_* settings, which report all mistakes at once. Plain Python.

A value comes from the environment, else from ``.env``, else from its default. A setting that may
be secret can also be in a file that ``<NAME>_FILE`` names (without one trailing newline).
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import SplitResult, quote, unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIX: Final = "GATEHOUSE_"
TRUE: Final = frozenset({"1", "true", "yes", "on"})
FALSE: Final = frozenset({"0", "false", "no", "off"})
LOG_LEVELS: Final = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
# Kubernetes sets these variables in every pod of a namespace with a Service named "gatehouse".
_SERVICE_LINK: Final = re.compile(r"GATEHOUSE_(SERVICE_(HOST|PORT\w*)|PORT_[0-9]+_\w+)")
_LINE: Final = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)")
_HIGHEST_PORT: Final = 65535
_MOST_HOPS: Final = 16


class SettingsError(Exception):
    """One or more settings are invalid; ``problems`` has one line for each."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(f"gatehouse: {problem}" for problem in problems))
        self.problems = problems


@dataclass(frozen=True, slots=True)
class DatabaseURL:
    """The parts of a database address: ``engine`` is ``sqlite3`` or ``postgresql``.

    ``options`` are libpq's other parameters, such as ``sslmode`` and ``sslrootcert``.
    """

    engine: str
    name: str
    user: str = ""
    password: str = field(default="", repr=False)
    host: str = ""
    port: str = ""
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Reader:
    """Reads settings one by one, and collects the names that are read and the problems.

    ``finish()`` raises SettingsError if a value is invalid, or a variable is set that nobody reads.
    """

    values: Mapping[str, str]
    problems: list[str] = field(default_factory=list)
    known: set[str] = field(default_factory=set)

    def text(self, name: str, default: str = "") -> str:
        """A text, without surrounding space."""
        self.known.add(name)
        return self.values.get(name, "").strip() or default

    def secret(self, name: str, default: str = "") -> str:
        """A text that may be in the file named by ``<name>_FILE`` instead."""
        in_file = f"{name}_FILE"
        path = self.text(in_file)
        value = self.text(name)
        if not path:
            return value or default
        if value:
            self.complain(name, f"and {in_file} are both set", "keep one of them")
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "is not text"
            self.complain(in_file, f"points at {path}: {reason}", "name a file that can be read")
            return default
        return text.removesuffix("\n").removesuffix("\r") or default

    def boolean(self, name: str, *, default: bool) -> bool:
        """``true`` or ``false``, also 1/0, yes/no, on/off."""
        value = self.text(name).lower()
        if value and value not in TRUE | FALSE:
            self.complain(name, f"is {value!r}", "write true or false")
        return value in TRUE if value in TRUE | FALSE else default

    def integer(self, name: str, default: int, *, lowest: int, highest: int) -> int:
        """A whole number within bounds."""
        value = self.text(name)
        if not value:
            return default
        if re.fullmatch(r"[0-9]{1,9}", value, re.ASCII) and lowest <= int(value) <= highest:
            return int(value)
        self.complain(name, f"is {value!r}", f"write a number from {lowest} to {highest}")
        return default

    def hops(self, name: str) -> int:
        """The number of proxies in front: ``true`` is one, ``false`` none."""
        value = self.text(name).lower()
        if value in TRUE | FALSE | {""}:
            return int(value in TRUE)
        return self.integer(name, 0, lowest=0, highest=_MOST_HOPS)

    def long_secret(self, name: str, default: str = "", *, shortest: int) -> str:
        """A secret of at least so many characters; empty if none is given."""
        value = self.secret(name, default)
        if value and len(value) < shortest:
            self.complain(name, f"has {len(value)} characters", f"use at least {shortest}")
        return value

    def port(self, name: str, default: int) -> int:
        """A TCP port."""
        return self.integer(name, default, lowest=1, highest=_HIGHEST_PORT)

    def choice(self, name: str, default: str, choices: tuple[str, ...]) -> str:
        """One of a few words, in any case."""
        value = self.text(name)
        by_fold = {choice.casefold(): choice for choice in choices}
        if value and value.casefold() not in by_fold:
            self.complain(name, f"is {value!r}", f"write one of {', '.join(choices)}")
        return by_fold.get(value.casefold(), default)

    def words(self, name: str) -> list[str]:
        """A list separated by commas."""
        return [word.strip() for word in self.text(name).split(",") if word.strip()]

    def networks(self, name: str, default: str) -> list[IPv4Network | IPv6Network]:
        """A list of networks such as ``10.0.0.0/8``, separated by commas."""
        found: list[IPv4Network | IPv6Network] = []
        for word in self.words(name) or default.split(","):
            try:
                found.append(ip_network(word))
            except ValueError as error:
                self.complain(name, f"has a wrong network: {error}", "write it as 10.0.0.0/8")
        return found

    def web_address(self, name: str, default: str) -> str:
        """``http(s)://host[:port]``, without path and trailing slash."""
        value = self.text(name, default).rstrip("/")
        parts = _split(value)
        if parts and parts.scheme in {"http", "https"} and parts.hostname and not parts.path:
            return value
        self.complain(name, f"is {value!r}", "write it as https://gatehouse.example.com")
        return default

    def database(self, name: str, default: str, password: str) -> DatabaseURL:
        """``postgres://user@host:5432/name?sslmode=verify-full`` or ``sqlite:///path``.

        ``postgres:///name?host=/run/postgresql`` names a folder with the server's socket.
        """
        value = self.secret(name, default)
        try:
            return _database(value, password)
        except ValueError as error:
            reason = str(error)
        hint = "write postgres://USER:PASSWORD@HOST:5432/NAME or sqlite:///PATH"
        hint += f" ({reason})" if reason else ""
        self.complain(name, f"is not a database address ({_without_password(value)!r})", hint)
        return DatabaseURL("sqlite3", ":memory:")

    def broker(self, name: str, default: str, password: str) -> str:
        """``redis://host:6379/0``, ``rediss://…`` or ``filesystem://``."""
        value = self.secret(name, default)
        parts = _split(value)
        if parts and parts.scheme in {"redis", "rediss"} and parts.hostname:
            if password and not parts.password:
                return value.replace("://", f"://:{quote(password, safe='')}@", 1)
            return value
        if value != "filesystem://":
            hint = "write redis://HOST:6379/0 or filesystem://"
            self.complain(name, f"is not a broker address ({_without_password(value)!r})", hint)
        return "filesystem://"

    def file(self, name: str, folder: Path) -> Path | None:
        """An existing file, relative to the folder; None if none is named."""
        value = self.text(name)
        if not value:
            return None
        path = folder / value
        if not path.is_file():
            self.complain(name, f"points at {value}: no such file", "name a file that can be read")
        return path

    def finish(self) -> None:
        """Raise SettingsError if there are problems or unknown names."""
        ours = {name for name in self.values if name.startswith(PREFIX)}
        for name in sorted(ours - self.known):
            is_address = self.values[name].startswith(("tcp://", "udp://"))
            if _SERVICE_LINK.fullmatch(name) or (name == "GATEHOUSE_PORT" and is_address):
                continue
            close = difflib.get_close_matches(name, sorted(self.known), n=1, cutoff=0.6)
            hint = f"did you mean {close[0]}?" if close else "docs/reference/settings.md lists all"
            self.complain(name, "is not a setting", hint)
        if self.problems:
            raise SettingsError(self.problems)

    def complain(self, name: str, what: str, hint: str) -> None:
        """Add one problem and its remedy."""
        self.problems.append(f"{name} {what}: {hint}")


def read_env_file(path: Path) -> dict[str, str]:
    """The ``NAME=value`` lines of a file; quotes around a value and comment lines are dropped.

    A missing file counts as empty. Raises SettingsError at a malformed line.
    """
    if not path.is_file():
        return {}
    values: dict[str, str] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        match = _LINE.fullmatch(text)
        if match is None:
            raise SettingsError([f"{path.name}, line {number} is not NAME=value: correct the line"])
        value = match[2].strip()
        is_quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
        values[match[1]] = value[1:-1] if is_quoted else value
    return values


def gather(environment: Mapping[str, str], env_file: Path) -> dict[str, str]:
    """The environment over ``.env``; GATEHOUSE_ENV_FILE names another file (or none, if empty)."""
    named = environment.get("GATEHOUSE_ENV_FILE")
    path = env_file if named is None else Path(named)
    return {**read_env_file(path), **environment}


def _split(value: str) -> SplitResult | None:
    try:
        parts = urlsplit(value)
        _ = parts.port  # raises for a port that is no number
    except ValueError:
        return None
    return parts


def _database(value: str, password: str) -> DatabaseURL:
    """Raise ValueError, perhaps with a reason, if the value is no database address."""
    parts = _split(value)
    if parts is None:
        raise ValueError
    name = unquote(parts.path.removeprefix("/"))
    if parts.scheme == "sqlite" and name and not (parts.netloc or parts.query or parts.fragment):
        return DatabaseURL("sqlite3", name)
    if parts.scheme not in {"postgres", "postgresql"}:
        raise ValueError
    return _postgresql(value, password)


def _postgresql(value: str, password: str) -> DatabaseURL:
    """Parse an address with libpq's own rules; its query holds the options."""
    # Imported here only: each probe starts a process that reads settings and needs no database.
    from psycopg import ProgrammingError  # noqa: PLC0415
    from psycopg.conninfo import conninfo_to_dict  # noqa: PLC0415

    try:
        found = {key: str(text) for key, text in conninfo_to_dict(value).items()}
    except ProgrammingError as error:
        raise ValueError(_without_password(str(error).strip())) from None
    name, host = found.pop("dbname", ""), found.pop("host", "")
    port = found.pop("port", "")
    if not name or not host or not (port or "1").isdecimal():
        raise ValueError
    given = found.pop("password", "")
    return DatabaseURL(
        "postgresql", name, found.pop("user", ""), given or password, host, port, found
    )


def _without_password(value: str) -> str:
    return re.sub(r"//[^@/]*@", "//…@", value)
