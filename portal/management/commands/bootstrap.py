"""`manage.py bootstrap`: migrate, accept the key in use, create the first admin and print it."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.management import call_command

from policies.management.console import Console
from portal.auth.accounts import ensure_first_admin
from portal.health import problems

if TYPE_CHECKING:
    from django.core.management.base import CommandParser

_HELP = """\
Migrate the database, and create the first admin if there is none. Safe to run at every start.

  GATEHOUSE_ADMIN_USER=ada GATEHOUSE_ADMIN_PASSWORD_FILE=/run/secrets/password manage.py bootstrap
  manage.py bootstrap --accept-key      after the secret key was lost and credentials were replaced

Without a password, the command generates one and prints it once.
"""


class Command(Console):
    """``manage.py bootstrap``."""

    help = _HELP

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the option."""
        parser.add_argument(
            "--accept-key",
            action="store_true",
            help="accept the secret key in use; credentials made with another one stay invalid",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Migrate, create the admin, report."""
        call_command("check", databases=["default"], stdout=io.StringIO())
        call_command("migrate", interactive=False, verbosity=min(options["verbosity"], 1))
        if options["accept_key"]:
            problems.accept_key()
        if key_problem := problems.keep_key_check():
            self.stderr.write(f"gatehouse: {key_problem}")
        admin_password = ensure_first_admin()
        if admin_password:
            self.stdout.write(f"admin: {settings.GATEHOUSE_ADMIN_USER}\npassword: {admin_password}")
