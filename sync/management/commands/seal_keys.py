"""`manage.py seal_keys`: its actions show, create, rotate and retire, printed."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from django.core.management.base import CommandError

from policies.management.console import FINDINGS, Console
from policies.plurals import counted
from sync.connect import key_rotation, seal_keys
from sync.connect.sealed_box import SealingError

if TYPE_CHECKING:
    from argparse import ArgumentParser

_HELP = """\
The keys with which clusters' credentials are sealed. Run it where the private keys are: beside the
worker. Web processes need the public file alone.

  manage.py seal_keys show             the keys, and how many clusters need each
  manage.py seal_keys create           make the first pair, if there is none
  manage.py seal_keys rotate           make a new key and seal all credentials with it; a run that
                                       was killed is finished by the next
  manage.py seal_keys retire [KEY]     drop old keys that no cluster needs any more

Exit code 0: done; 1: a credential does not open, a key is still needed, or there is none; 2: wrong
usage.
"""


class Command(Console):
    """``manage.py seal_keys``."""

    help = _HELP

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        add = parser.add_argument
        add("action", choices=["show", "create", "rotate", "retire"])
        add("key", nargs="?", default="", help="the key to retire (default: all that are old)")
        add("-o", "--output", choices=["text", "json"], default="text", help="how to show")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Carry out one of the four actions."""
        actions = {"show": self._show, "create": self._create, "rotate": self._rotate}
        try:
            if options["action"] == "retire":
                for name in key_rotation.retire(options["key"]):
                    self.stdout.write(f"dropped: {name}")
            else:
                actions[options["action"]](options["output"])
        except (SealingError, key_rotation.RetireError, seal_keys.KeyFileError, OSError) as error:
            raise CommandError(str(error), returncode=FINDINGS) from error

    def _show(self, output: str) -> None:
        states = key_rotation.key_states()
        if output == "json":
            self.stdout.write(json.dumps([asdict(state) for state in states], indent=2))
            return
        for state in states:
            role = "current" if state.is_current else "old"
            private = "private key here" if state.has_private else "no private key here"
            self.stdout.write(
                f"{state.key_id}\t{role}\t{private}\t{counted(state.rows, 'clusters')}"
            )

    def _create(self, _output: str) -> None:
        made = seal_keys.ensure_keys()
        self.stdout.write("made the first pair" if made else "there are keys already")

    def _rotate(self, _output: str) -> None:
        rotation = key_rotation.rotate()
        self.stdout.write(f"{'new key' if rotation.is_new else 'finished for'} {rotation.key_id}")
        for name in rotation.done:
            self.stdout.write(f"sealed again: {name}")
        if rotation.failed:
            names = ", ".join(rotation.failed)
            raise CommandError(f"do not open, connect again: {names}", returncode=FINDINGS)
