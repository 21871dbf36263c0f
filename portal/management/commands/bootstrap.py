"""Bring the database up to date and make the first admin."""

from __future__ import annotations

import io
from typing import Any

from django.conf import settings
from django.core.management import call_command

from policies.management.console import Console
from portal.accounts import ensure_first_admin

_HELP = """\
Migrate the database and make the first admin, if there is none. Safe to run at every start.

  GATEHOUSE_ADMIN_USER=ada GATEHOUSE_ADMIN_PASSWORD_FILE=/run/secrets/password manage.py bootstrap

Without a password one is generated and printed, this once.
"""


class Command(Console):
    """``manage.py bootstrap``."""

    help = _HELP

    def handle(self, *_args: Any, **options: Any) -> None:
        """Migrate, make the admin, tell."""
        call_command("check", databases=["default"], stdout=io.StringIO())
        call_command("migrate", interactive=False, verbosity=min(options["verbosity"], 1))
        password = ensure_first_admin()
        if password:
            self.stdout.write(f"admin: {settings.GATEHOUSE_ADMIN_USER}\npassword: {password}")
