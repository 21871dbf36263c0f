"""`manage.py audit_export`: its options; days exported or files verified, each printed."""

from __future__ import annotations

import sys
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

from django.core.management.base import CommandError

from admission.models import AuditExport
from admission.record import export as record_export
from policies.management.console import FINDINGS, USAGE, Console

if TYPE_CHECKING:
    from argparse import ArgumentParser

_HELP = """\
Write each finished day of the record to a file of its own: one decision a line, JSON, gzip. A file
counts when it was read again. An export that was stopped resumes.

  manage.py audit_export                    every finished day that has no file
  manage.py audit_export --day 2026-11-20   this day, again if it has a file
  manage.py audit_export --verify           check that the files are unchanged

Exit code 0: done; 1: a file could not be written, or has changed; 2: wrong usage.
"""


class Command(Console):
    """``manage.py audit_export``."""

    help = _HELP

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        which = parser.add_mutually_exclusive_group()
        which.add_argument("--day", type=date.fromisoformat, metavar="YYYY-MM-DD")
        which.add_argument("--verify", action="store_true", help="look only, write nothing")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Export, or verify, and report."""
        if options["verify"]:
            exports = AuditExport.objects.order_by("day")
            changed = [export for export in exports if not record_export.is_intact(export)]
            for export in changed:
                self.stderr.write(f"{export.path}: is missing or has changed")
            if changed:
                sys.exit(FINDINGS)
            self.stdout.write(f"{len(exports)} files, all as they were written")
            return
        day, now = options["day"], datetime.now(UTC)
        if day and not record_export.is_over(day, now=now):
            raise CommandError(f"{day} is not over yet", returncode=USAGE)
        for finished_day in [day] if day else record_export.due(now=now):
            try:
                export = record_export.export_day(finished_day)
            except record_export.ExportError as error:
                raise CommandError(str(error), returncode=FINDINGS) from error
            self.stdout.write(f"{export.path}: {export.rows} rows, SHA-256 {export.sha256}")
