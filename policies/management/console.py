"""Console, the parent of commands: help layout, ``find_cluster``, ``user_of``, exit codes."""

from __future__ import annotations

import difflib
import getpass
import re
from argparse import RawDescriptionHelpFormatter
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError

from policies.models import Cluster

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from django.core.management.base import CommandParser

    from policies.manifests.documents import ManifestError

FINDINGS: Final = 1
USAGE: Final = 2
_OPTION: Final = re.compile(r"--[a-z][-a-z]*")
_OF_EVERY_COMMAND: Final = ("--settings", "--pythonpath", "--traceback", "--force-color")
_ACCOUNTS_COMPARED: Final = 1000


class Console(BaseCommand):
    """A command whose help keeps its line breaks, and whose options are given in full."""

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        """Keep the lines of the help, and refuse a part of an option's name."""
        kwargs.setdefault("formatter_class", RawDescriptionHelpFormatter)
        kwargs.setdefault("allow_abbrev", False)
        parser = super().create_parser(prog_name, subcommand, **kwargs)
        refuse, known = parser.error, partial(_known_options, parser)
        parser.error = lambda message: refuse(message + _meant(message, known()))  # type: ignore[method-assign]  # Django makes the parser
        return parser


def _known_options(parser: CommandParser) -> list[str]:
    return sorted({*_OPTION.findall(parser.format_help())} - {*_OF_EVERY_COMMAND})


def _meant(message: str, known: list[str]) -> str:
    """The end of an error about an unknown option: the nearest one."""
    given = _OPTION.findall(message) if message.startswith("unrecognized") else []
    near = [near for name in given for near in difflib.get_close_matches(name, known, n=1)]
    return f"; did you mean {', '.join(near)}?" if near else ""


def add_user(parser: ArgumentParser) -> None:
    """Declare ``--user``, the account that a command acts as."""
    text = "the account that acts, for the record (default: the system's user)"
    parser.add_argument("--user", default="", metavar="ACCOUNT", help=text)


def user_of(name: str = "") -> str:
    """The name for the record: an active account's, or without one the system's user.

    Raises CommandError for an account that is unknown or deactivated.
    """
    if not name:
        return f"{getpass.getuser()} (command line)"
    accounts = get_user_model().objects.filter(is_active=True)
    if accounts.filter(username=name).exists():
        return name
    names = accounts.values_list("username", flat=True)[:_ACCOUNTS_COMPARED]
    near = difflib.get_close_matches(name, list(names), n=1)
    meant = f"; did you mean {near[0]}?" if near else ""
    raise CommandError(f'--user: no active account "{name}"{meant}', returncode=USAGE)


def find_cluster(name: str) -> Cluster:
    """Find a cluster; raises CommandError with the known names."""
    cluster: Cluster | None = Cluster.objects.filter(name=name).first()
    if cluster is None:
        known_names = ", ".join(Cluster.objects.values_list("name", flat=True)) or "none yet"
        raise CommandError(f'no cluster "{name}"; known: {known_names}', returncode=USAGE)
    return cluster


def refused(error: ManifestError) -> CommandError:
    """The error of a command that found problems: one line each, exit code 1."""
    problem_count = len(error.problems)
    summary = f"{problem_count} problem{'s' if problem_count > 1 else ''}; nothing was imported"
    return CommandError(f"{error}\n{summary}", returncode=FINDINGS)
