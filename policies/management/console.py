"""Console, the parent of commands: help layout, ``find_cluster``, ``user_of``, exit codes."""

from __future__ import annotations

import difflib
import getpass
from argparse import RawDescriptionHelpFormatter
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
_ACCOUNTS_COMPARED: Final = 1000


class Console(BaseCommand):
    """A command whose help keeps its line breaks."""

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        """Keep the lines of the help."""
        kwargs.setdefault("formatter_class", RawDescriptionHelpFormatter)
        return super().create_parser(prog_name, subcommand, **kwargs)


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
