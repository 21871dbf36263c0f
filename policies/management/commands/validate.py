"""`manage.py validate`: its options; problems of files printed as text or JSON. No database."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any, Final

from policies.management.console import FINDINGS, Console
from policies.manifests.bundle import Bundle, read_bundle
from policies.manifests.documents import ManifestError, Problem
from policies.manifests.sources import STANDARD_INPUT, read_sources
from policies.plurals import counted

if TYPE_CHECKING:
    from argparse import ArgumentParser

NOTHING: Final = "there is no manifest in it"
WAY_OUT: Final = "was what should have written it refused?"
_HELP = """\
Check manifests as an API server and an import would: every error with file, line, column, and
what to write instead.

  manage.py validate policies/
  manage.py validate quota.yaml -o json | jq '.problems[].line'
  kubectl get limitrange -o yaml | manage.py validate -

Exit code 0: all is well; 1: errors, or nothing to check; 2: wrong usage.
"""


class Command(Console):
    """``manage.py validate``."""

    help = _HELP
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        add = parser.add_argument
        add("paths", nargs="+", metavar="FILE|DIR|-", help="files, folders, - for standard input")
        add("-o", "--output", choices=["text", "json"], default="text")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Validate the files, and report each problem."""
        validated, problems = Bundle(), list[Problem]()
        try:
            validated = read_bundle(read_sources(options["paths"]))
            if validated == Bundle():
                name = "<stdin>" if options["paths"] == [STANDARD_INPUT] else options["paths"][0]
                problems = [Problem(source=name, message=NOTHING, hint=WAY_OUT, code="empty")]
        except ManifestError as error:
            problems = error.problems
        report_problems = self._report_json if options["output"] == "json" else self._report_text
        report_problems(validated, problems)
        if problems:
            sys.exit(FINDINGS)

    def _report_text(self, bundle: Bundle, problems: list[Problem]) -> None:
        for shown_problem in problems:
            self.stdout.write(str(shown_problem))
        if not problems:
            left_out = f", {len(bundle.others)} of other kinds left out" if bundle.others else ""
            number = len(bundle.objects) + len(bundle.classes)
            self.stdout.write(f"{counted(number, 'objects')}, all valid{left_out}")

    def _report_json(self, bundle: Bundle, problems: list[Problem]) -> None:
        validation = {
            "valid": not problems,
            "problems": [problem.to_json() for problem in problems],
            "objects": [wanted.item.title for wanted in (*bundle.objects, *bundle.classes)],
            "others": list(bundle.others),
        }
        self.stdout.write(json.dumps(validation, indent=2, ensure_ascii=False))
