"""Reader of typed GATEHOUSE_* settings (port, boolean, database); .env lines; all complaints.

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
_ENV_LINE: Final = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)")
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
        named = self.text(in_file)
        setting = self.text(name)
        if not named:
            return setting or default
        if setting:
            self.complain(name, f"and {in_file} are both set", "keep one of them")
        try:
            secret_text = Path(named).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "is not text"
            self.complain(in_file, f"points at {named}: {reason}", "name a file that can be read")
            return default
        return secret_text.removesuffix("\n").removesuffix("\r") or default

    def boolean(self, name: str, *, default: bool) -> bool:
        """``true`` or ``false``, also 1/0, yes/no, on/off."""
        setting = self.text(name).lower()
        if setting and setting not in TRUE | FALSE:
            self.complain(name, f"is {setting!r}", "write true or false")
        return setting in TRUE if setting in TRUE | FALSE else default

    def integer(self, name: str, default: int, *, lowest: int, highest: int) -> int:
        """A whole number within bounds."""
        setting = self.text(name)
        if not setting:
            return default
        if re.fullmatch(r"[0-9]{1,9}", setting, re.ASCII) and lowest <= int(setting) <= highest:
            return int(setting)
        self.complain(name, f"is {setting!r}", f"write a number from {lowest} to {highest}")
        return default

    def hops(self, name: str) -> int:
        """The number of proxies in front: ``true`` is one, ``false`` none."""
        setting = self.text(name).lower()
        if setting in TRUE | FALSE | {""}:
            return int(setting in TRUE)
        return self.integer(name, 0, lowest=0, highest=_MOST_HOPS)

    def long_secret(self, name: str, default: str = "", *, shortest: int) -> str:
        """A secret of at least so many characters; empty if none is given."""
        setting = self.secret(name, default)
        if setting and len(setting) < shortest:
            self.complain(name, f"has {len(setting)} characters", f"use at least {shortest}")
        return setting

    def port(self, setting_name: str, default: int) -> int:
        """A TCP port."""
        return self.integer(setting_name, default, lowest=1, highest=_HIGHEST_PORT)

    def choice(self, name: str, *choices: str, default: str = "") -> str:
        """One of a few words, in any case; without a default, the first is it."""
        setting = self.text(name)
        choice_by_fold = {choice.casefold(): choice for choice in choices}
        if setting and setting.casefold() not in choice_by_fold:
            self.complain(name, f"is {setting!r}", f"write one of {', '.join(choices)}")
        return choice_by_fold.get(setting.casefold(), default or choices[0])

    def words(self, name: str) -> list[str]:
        """A list separated by commas."""
        return [word.strip() for word in self.text(name).split(",") if word.strip()]

    def networks(self, name: str, default: str) -> list[IPv4Network | IPv6Network]:
        """A list of networks such as ``10.0.0.0/8``, separated by commas."""
        read_networks: list[IPv4Network | IPv6Network] = []
        for network_text in self.words(name) or default.split(","):
            try:
                read_networks.append(ip_network(network_text))
            except ValueError as error:
                self.complain(name, f"has a wrong network: {error}", "write it as 10.0.0.0/8")
        return read_networks

    def web_address(self, name: str, default: str) -> str:
        """``http(s)://host[:port]``, without path and trailing slash."""
        setting = self.text(name, default).rstrip("/")
        url = _split_url(setting)
        if url and url.scheme in {"http", "https"} and url.hostname and not url.path:
            return setting
        self.complain(name, f"is {setting!r}", "write it as https://gatehouse.example.com")
        return default

    def link(self, name: str) -> str:
        """The address of a page; empty if none is given."""
        setting = self.text(name)
        url = _split_url(setting)
        if not setting or (url and url.scheme in {"http", "https"} and url.hostname):
            return setting
        self.complain(name, f"is {setting!r}", "write it as https://example.com/gatehouse")
        return ""

    def database(self, name: str, default: str, password: str) -> DatabaseURL:
        """``postgres://user@host:5432/name?sslmode=verify-full`` or ``sqlite:///path``.

        ``postgres:///name?host=/run/postgresql`` names a folder with the server's socket.
        """
        setting = self.secret(name, default)
        try:
            return _database_url(setting, password)
        except ValueError as error:
            url_reason = str(error)
        url_hint = "write postgres://USER:PASSWORD@HOST:5432/NAME or sqlite:///PATH"
        url_hint += f" ({url_reason})" if url_reason else ""
        self.complain(name, f"is not a database address ({_without_password(setting)!r})", url_hint)
        return DatabaseURL("sqlite3", ":memory:")

    def broker(self, name: str, default: str, password: str) -> str:
        """``redis://host:6379/0``, ``rediss://…`` or ``filesystem://``."""
        setting = self.secret(name, default)
        url_parts = _split_url(setting)
        if url_parts and url_parts.scheme in {"redis", "rediss"} and url_parts.hostname:
            if password and not url_parts.password:
                return setting.replace("://", f"://:{quote(password, safe='')}@", 1)
            return setting
        if setting != "filesystem://":
            forms = "write redis://HOST:6379/0 or filesystem://"
            self.complain(name, f"is not a broker address ({_without_password(setting)!r})", forms)
        return "filesystem://"

    def file(self, name: str, folder: Path) -> Path | None:
        """An existing file, relative to the folder; None if none is named."""
        named = self.text(name)
        if not named:
            return None
        setting_file = folder / named
        if not setting_file.is_file():
            self.complain(name, f"points at {named}: no such file", "name a file that can be read")
        return setting_file

    def finish(self) -> None:
        """Raise SettingsError if there are problems or unknown names."""
        gatehouse_names = {name for name in self.values if name.startswith(PREFIX)}
        for name in sorted(gatehouse_names - self.known):
            is_address = self.values[name].startswith(("tcp://", "udp://"))
            if _SERVICE_LINK.fullmatch(name) or (name == "GATEHOUSE_PORT" and is_address):
                continue
            close = difflib.get_close_matches(name, sorted(self.known), n=1, cutoff=0.6)
            hint = f"did you mean {close[0]}?" if close else "docs/reference/settings.md lists all"
            self.complain(name, "is not a setting", hint)
        if self.problems:
            raise SettingsError(self.problems)

    def complain(self, name: str, complaint: str, hint: str) -> None:
        """Add one problem and its remedy."""
        self.problems.append(f"{name} {complaint}: {hint}")


def read_env_file(path: Path) -> dict[str, str]:
    """The ``NAME=value`` lines of a file; quotes around a value and comment lines are dropped.

    A missing file counts as empty. Raises SettingsError at a malformed line.
    """
    if not path.is_file():
        return {}
    env_values: dict[str, str] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        env_line = line.strip()
        if not env_line or env_line.startswith("#"):
            continue
        env_match = _ENV_LINE.fullmatch(env_line)
        if env_match is None:
            raise SettingsError([f"{path.name}, line {number} is not NAME=value: correct the line"])
        env_value = env_match[2].strip()
        is_quoted = len(env_value) > 1 and env_value[0] == env_value[-1] and env_value[0] in "'\""
        env_values[env_match[1]] = env_value[1:-1] if is_quoted else env_value
    return env_values


def gather(environment: Mapping[str, str], env_file: Path) -> dict[str, str]:
    """The environment over ``.env``; GATEHOUSE_ENV_FILE names another file (or none, if empty)."""
    named_file = environment.get("GATEHOUSE_ENV_FILE")
    path = env_file if named_file is None else Path(named_file)
    return {**read_env_file(path), **environment}


def _split_url(url: str) -> SplitResult | None:
    try:
        url_parts = urlsplit(url)
        _ = url_parts.port  # raises for a port that is no number
    except ValueError:
        return None
    return url_parts


def _database_url(url: str, password: str) -> DatabaseURL:
    """Raise ValueError, perhaps with a reason, if the value is no database address."""
    split = _split_url(url)
    if split is None:
        raise ValueError
    file = unquote(split.path.removeprefix("/"))
    if split.scheme == "sqlite" and file and not (split.netloc or split.query or split.fragment):
        return DatabaseURL("sqlite3", file)
    if split.scheme not in {"postgres", "postgresql"}:
        raise ValueError
    return _postgresql_url(url, password)


def _postgresql_url(url: str, password: str) -> DatabaseURL:
    """Parse an address with libpq's own rules; its query holds the options."""
    # Imported here only: each probe starts a process that reads settings and needs no database.
    from psycopg import ProgrammingError  # noqa: PLC0415
    from psycopg.conninfo import conninfo_to_dict  # noqa: PLC0415

    try:
        conninfo = {key: str(text) for key, text in conninfo_to_dict(url).items()}
    except ProgrammingError as error:
        raise ValueError(_without_password(str(error).strip())) from None
    dbname, host = conninfo.pop("dbname", ""), conninfo.pop("host", "")
    port = conninfo.pop("port", "")
    if not dbname or not host or not (port or "1").isdecimal():
        raise ValueError
    given = conninfo.pop("password", "")
    return DatabaseURL(
        "postgresql", dbname, conninfo.pop("user", ""), given or password, host, port, conninfo
    )


def _without_password(url: str) -> str:
    return re.sub(r"//[^@/]*@", "//…@", url)
