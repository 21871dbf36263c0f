"""`manage.py audit_retention`: its options; each Removal, planned or made, printed."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from admission.record import retention
from policies.management.console import FINDINGS, Console

if TYPE_CHECKING:
    from argparse import ArgumentParser

_HELP = """\
Remove rows whose retention period is over (GATEHOUSE_RETENTION_ALLOWED_DAYS,
GATEHOUSE_RETENTION_DENIED_DAYS), day by day. Rows are exported first; rows under a legal hold stay;
each removal is recorded. Entries of the ledger's journal go with the allowed decisions.

  manage.py audit_retention --dry-run   lists what would go, changes nothing
  manage.py audit_retention

Exit code 0: done, or nothing to do; 1: something could not be removed; 2: wrong usage.
"""


class Command(Console):
    """``manage.py audit_retention``."""

    help = _HELP

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        parser.add_argument("--dry-run", action="store_true", help="list what would be removed")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Remove, or plan, and report."""
        plan_or_apply = retention.plan if options["dry_run"] else retention.apply
        removals = plan_or_apply(today=retention.today())
        verb = "would go" if options["dry_run"] else "removed"
        for removal in removals:
            if removal.problem:
                self.stderr.write(f"{removal.day}: stays on record: {removal.problem}")
                continue
            held = f", {removal.held} held" if removal.held else ""
            self.stdout.write(
                f"{removal.day}: {removal.going} rows {verb} ({removal.verdicts}),"
                f" {removal.kept} kept{held}"
            )
        removed = (
            0 if options["dry_run"] else retention.remove_ledger_entries(today=retention.today())
        )
        if removed:
            self.stdout.write(f"{removed} entries of the ledger's journal removed")
        elif not removals:
            self.stdout.write("nothing is due")
        if any(removal.problem for removal in removals):
            sys.exit(FINDINGS)
