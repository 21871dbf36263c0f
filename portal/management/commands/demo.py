"""`manage.py demo`: fill in the demo clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from policies.management.console import Console
from portal.dev.demo import CLUSTER, begin_demo, demo_credential

if TYPE_CHECKING:
    from argparse import ArgumentParser

_HELP = """\
Make the demo clusters that are not there yet, with a month of decisions where none is there.
Those that exist are left as they are.

  demo           a LimitRange, a scheduler picked by QoS class, and one limited priority class
  demo-priority  every pod with a priority class needs a covering quota
  demo-connected looks as if it were connected: drift, a conflict, an alert, two runs

  manage.py demo
  manage.py demo --credential      print the secret with which cluster demo asks
"""


class Command(Console):
    """``manage.py demo``."""

    help = _HELP

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare what can be said."""
        parser.add_argument("--credential", action="store_true", help="print the demo secret")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Seed, report."""
        made = begin_demo()
        if options["credential"]:
            self.stdout.write(demo_credential())
            return
        self.stdout.write(
            f"made: {', '.join(made)}" if made else f"nothing to do: {CLUSTER} is there"
        )
