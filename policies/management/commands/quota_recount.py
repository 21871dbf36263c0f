"""`manage.py quota_recount`: its options; RecountDifferences printed as lines or JSON."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from django.core.management.base import CommandError

from policies.ledger.entries import JournalLine
from policies.ledger.recount import recount
from policies.management.console import (
    FINDINGS,
    USAGE,
    Console,
    add_user,
    find_cluster,
    user_of,
)
from policies.models import Cluster, Namespace

if TYPE_CHECKING:
    from argparse import ArgumentParser

_HELP = """\
Compare what each quota says is used with the sum of its charges, reservations included.

  manage.py quota_recount                              all clusters
  manage.py quota_recount --cluster prod -n web        one namespace
  manage.py quota_recount --cluster prod --repair      set what differs to the sum
  manage.py quota_recount -o json                      for machines

Admissions go on meanwhile: each namespace is locked for as long as it is counted. Whatever is
outstanding is part of the sum, so a repair takes no room from anybody who was promised it.
Below each difference are the newest entries of the journal that moved the amount.
Exit code 0: nothing differs, or it was repaired; 1: something differs; 2: wrong usage.
"""


class Command(Console):
    """``manage.py quota_recount``."""

    help = _HELP

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        add = parser.add_argument
        add("--cluster", default="", help="only this cluster")
        add("-n", "--namespace", default="", help="only this namespace; needs --cluster")
        add("--repair", action="store_true", help="set differing amounts to the sum of the charges")
        add_user(parser)
        add("-o", "--output", choices=("text", "json"), default="text", help="default: text")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Recount, print the differences, and set the exit code."""
        recounted_namespace, repair = options["namespace"], options["repair"]
        user = user_of(options["user"])
        found = [
            {"cluster": name, **asdict(difference)}
            for name in _clusters(options["cluster"], recounted_namespace)
            for difference in recount(name, namespace=recounted_namespace, repair=repair, user=user)
        ]
        if options["output"] == "json":
            self.stdout.write(json.dumps({"differences": found, "repaired": repair}, indent=2))
        else:
            self.stdout.write("\n".join(map(_difference_lines, found)) or "nothing differs")
        if found and not repair:
            difference_count = f"{len(found)} difference{'s' if len(found) > 1 else ''}"
            raise CommandError(f"{difference_count}; --repair sets them right", returncode=FINDINGS)


def _clusters(name: str, namespace: str) -> list[str]:
    if not name:
        if namespace:
            raise CommandError("--namespace needs --cluster", returncode=USAGE)
        return list(Cluster.objects.order_by("name").values_list("name", flat=True))
    known_cluster = find_cluster(name)
    if namespace and not Namespace.objects.filter(cluster=known_cluster, name=namespace).exists():
        raise CommandError(f'cluster {name} has no namespace "{namespace}"', returncode=USAGE)
    return [known_cluster.name]


def _difference_lines(found: dict[str, Any]) -> str:
    place = f"{found['cluster']}/{found['namespace']} {found['quota']} {found['resource']}"
    used, charged = (found[name] or "nothing" for name in ("used", "charged"))
    heading = f"{place}: used {used}, charged {charged}"
    entries = [str(JournalLine(**entry)) for entry in found["entries"]]
    if not entries:
        return heading
    is_explained = found["is_explained"]
    label = "used lacks these entries:" if is_explained else "the newest entries that moved it:"
    return "\n  ".join([f"{heading}; {label}", *entries])
