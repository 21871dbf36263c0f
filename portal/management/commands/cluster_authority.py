"""`manage.py cluster_authority`: preview of a switch printed; the cluster's authority switched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.management.base import CommandError

from engine.policy import Authority
from policies import services
from policies.management.console import USAGE, Console, add_user, find_cluster, user_of
from portal.authority_switch import DAYS, DECISIONS, LONGEST, preview

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from policies.models import Cluster
    from policies.simulation.authority_preview import AuthorityImpact

_HELP = f"""\
Choose who enforces ranges and quotas in a cluster: the portal or the API server's own plugins.

  manage.py cluster_authority prod native              shows what would change
  manage.py cluster_authority prod native --days 30    looks further back
  manage.py cluster_authority prod native --yes --reason "plugins are on"    switches

The preview uses the decisions of the last {DAYS} days, at most the newest {DECISIONS},
and the ranges and quotas that only one side has.
Exit code 0: shown, or switched; 2: wrong usage.
"""


class Command(Console):
    """``manage.py cluster_authority``."""

    help = _HELP

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare arguments and options."""
        parser.add_argument("cluster", help="the cluster's name")
        parser.add_argument(
            "authority", choices=[each.value for each in Authority], help="who enforces"
        )
        parser.add_argument("--yes", action="store_true", help="switch instead of only showing")
        add_user(parser)
        parser.add_argument("--reason", default="", help="why, for the record; --yes needs it")
        parser.add_argument("--days", type=int, default=DAYS, help="to look back (%(default)s)")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Show the preview, then switch if ``--yes`` is given."""
        cluster, wanted_authority = find_cluster(options["cluster"]), options["authority"]
        if cluster.authority == wanted_authority:
            self.stdout.write(f"{cluster.name}: {wanted_authority} enforces already")
            return
        days = min(max(options["days"], 1), LONGEST)
        self._show(cluster, preview(cluster, wanted_authority, days=days), days)
        if not options["yes"]:
            self.stdout.write("nothing was changed; --yes switches")
            return
        if not options["reason"].strip():
            raise CommandError("nothing was changed; --yes needs a --reason", returncode=USAGE)
        user = user_of(options["user"])
        services.set_authority(
            cluster=cluster, authority=wanted_authority, user=user, reason=options["reason"]
        )
        self.stdout.write(f"{cluster.name}: {wanted_authority} enforces from now on")

    def _show(self, cluster: Cluster, impact: AuthorityImpact, days: int) -> None:
        say = self.stdout.write
        say(f"{cluster.name}: {cluster.authority} -> {impact.to}")
        say(f"  {_verdicts(impact, days)}")
        for namespace, verdict_count in impact.by_namespace:
            say(f"    {verdict_count} in {namespace or 'no namespace'}")
        for judged_decision in impact.examples:
            say(f"    {judged_decision.id} {judged_decision.target}: {judged_decision.message}")
        for namespace, names in sorted(impact.missing.items()):
            say(f"  {namespace} stays the portal's: not in the cluster yet: {', '.join(names)}")
        for name in impact.differing:
            say(f"  {name} differs between both sides")


def _verdicts(impact: AuthorityImpact, days: int) -> str:
    if not impact.looked_at:
        return f"no decision of the last {days} days is on record, so nothing can be predicted"
    verdict_summary = f"{impact.verdicts} of the {impact.looked_at} newest decisions of {days} days"
    if impact.to is Authority.NATIVE:
        return f"{verdict_summary} were denials, and would be left to the API server"
    return f"{verdict_summary} were warnings, and would be denials"
