"""`manage.py demo`: create the demo clusters, or print their credential."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from policies.management.console import Console
from portal.dev.demo import CLUSTER, begin_demo, demo_credential

if TYPE_CHECKING:
    from argparse import ArgumentParser

_HELP = """\
Create missing demo clusters, with a month of decisions if all are missing. Existing ones stay as
they are.

  demo           a LimitRange, a scheduler picked by QoS class, and one limited priority class
  demo-priority  every pod with a priority class needs a covering quota
  demo-connected looks as if it were connected: drift, a conflict, an alert, two runs

  manage.py demo
  manage.py demo --credential      print the webhook credential of the cluster demo
"""


class Command(Console):
    """``manage.py demo``."""

    help = _HELP

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the option."""
        parser.add_argument("--credential", action="store_true", help="print the demo secret")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Create the clusters, and report them or print the credential."""
        made = begin_demo()
        if options["credential"]:
            self.stdout.write(demo_credential())
            return
        self.stdout.write(
            f"made: {', '.join(made)}" if made else f"nothing to do: {CLUSTER} is there"
        )
