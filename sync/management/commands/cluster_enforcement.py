"""`manage.py cluster_enforcement`: a cluster's survey as table or JSON; after a check, if asked."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from django.core.management.base import CommandError

from policies.management.console import FINDINGS, USAGE, Console, find_cluster
from sync.connect import connections, probe
from sync.enforcement.survey import Because, Enforcer, survey
from sync.errors import APIError
from sync.installation import health
from sync.passes.advice import connection_of
from sync.values import WRITTEN_KINDS

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from policies.models import Cluster
    from sync.enforcement.gaps import Gap
    from sync.enforcement.survey import EnforcementSurvey, Holding

_HELP = """\
Show who enforces each kind of policy in each namespace of a cluster (its own plugins, the portal,
nobody), and what is missing for it, with the command that mends it:

  manage.py cluster_enforcement prod
  manage.py cluster_enforcement prod --namespace team
  manage.py cluster_enforcement prod --check    test the permissions and send a canary first
  manage.py cluster_enforcement prod -o json

No API shows whether the API server's plugins are on: the cluster's authority says what is expected.
--check needs the private key that opens credentials, as the worker has it.
Exit code 0: nothing is missing; 1: something is, or the check failed; 2: wrong usage.
"""
_ENFORCERS: Final = {Enforcer.PLUGIN: "native plugin", Enforcer.PORTAL: "portal"}
_REASONS: Final = {
    Because.ONLY_WARNS.value: "nobody (warn or audit)",
    Because.LEFT_OUT.value: "nobody (left out)",
    Because.WEBHOOK.value: "nobody (not called)",
}
_NONE: Final = "-"


class Command(Console):
    """``manage.py cluster_enforcement``."""

    help = _HELP

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        add = parser.add_argument
        add("cluster", help="the cluster's name")
        add("--namespace", default="", help="only this one, and what concerns the whole cluster")
        add("--check", action="store_true", help="test permissions and webhooks first")
        add("-o", "--output", choices=("text", "json"), default="text", help="default: text")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Survey and print; the exit code says whether something is missing."""
        cluster = find_cluster(options["cluster"])
        if options["check"]:
            _check(cluster)
        found = survey(cluster.name)
        if options["namespace"]:
            found = found.of_namespace(options["namespace"])
        if options["output"] == "json":
            self.stdout.write(json.dumps(found.to_json(), indent=2))
        else:
            self._print(found)
        if found.gaps:
            number = len(found.gaps)
            text = f"{number} thing{'s are' if number > 1 else ' is'} missing"
            raise CommandError(text, returncode=FINDINGS)

    def _print(self, found: EnforcementSurvey) -> None:
        say = self.stdout.write
        say(
            f"{found.cluster}: authority {found.authority}, webhooks {found.webhook}, "
            f"failure policy {found.failure_policy}"
        )
        for line in _table(found.holdings):
            say(line)
        if not found.holdings:
            say("no policies here: there is nothing to enforce")
        for text in found.unseen:
            say(f"cannot be seen: {text}")
        for gap in found.gaps:
            self._print_gap(gap)
        if not found.gaps:
            say("nothing is missing")

    def _print_gap(self, gap: Gap) -> None:
        place = f" in {gap.namespace}" if gap.namespace else ""
        self.stdout.write(f"missing{place}: {gap.words} [{gap.code.value}]")
        if gap.command:
            self.stdout.write(f"  {gap.command}")


def _check(cluster: Cluster) -> None:
    """Test the connection and the webhooks of a cluster, and store what is found."""
    connection = connection_of(cluster)
    if connection is None:
        message = f"{cluster} is not connected; run: manage.py connect_cluster {cluster}"
        raise CommandError(message, returncode=USAGE)
    if connection.is_paused:
        message = (
            f"{cluster} is paused: it gets no requests until manage.py sync {cluster} --resume"
        )
        raise CommandError(message, returncode=FINDINGS)
    try:
        with connections.open_client(cluster, limits=health.LIMITS) as client:
            if probe.test(connection, client).is_usable:
                health.check(cluster, client)
    except APIError as error:
        raise CommandError(f"{error.message} ({error.reason})", returncode=FINDINGS) from error


def _table(holdings: tuple[Holding, ...]) -> list[str]:
    """Lines of equal columns: a namespace in each, a kind in each column."""
    by_namespace: dict[str, dict[str, str]] = {}
    for each in holdings:
        by_namespace.setdefault(each.namespace, {})[each.kind] = _words(each)
    if not by_namespace:
        return []
    rows = [("NAMESPACE", *(kind.upper() for kind in WRITTEN_KINDS))]
    rows += [
        (namespace, *(cells.get(kind, _NONE) for kind in WRITTEN_KINDS))
        for namespace, cells in by_namespace.items()
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _words(holding: Holding) -> str:
    if holding.enforcer is Enforcer.NOBODY:
        return _REASONS[holding.because]
    proof = "" if holding.is_proven or holding.enforcer is Enforcer.PLUGIN else " (not proven)"
    return f"{_ENFORCERS[holding.enforcer]}{proof}"
