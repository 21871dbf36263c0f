"""Console, the parent of commands: help layout, ``find_cluster``, ``refused``, exit codes."""

from __future__ import annotations

from argparse import RawDescriptionHelpFormatter
from typing import TYPE_CHECKING, Any, Final

from django.core.management.base import BaseCommand, CommandError

from policies.models import Cluster

if TYPE_CHECKING:
    from django.core.management.base import CommandParser

    from policies.manifests.documents import ManifestError

FINDINGS: Final = 1
USAGE: Final = 2


class Console(BaseCommand):
    """A command whose help keeps its line breaks."""

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        """Keep the lines of the help."""
        kwargs.setdefault("formatter_class", RawDescriptionHelpFormatter)
        return super().create_parser(prog_name, subcommand, **kwargs)


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
