"""`manage.py export_manifests`: its options; YAML of a cluster's policies to file or stdout."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.core.management.base import CommandError

from policies.management.console import USAGE, Console, find_cluster
from policies.manifests.export import CHOICES, KINDS, export_cluster, export_limited_resources

if TYPE_CHECKING:
    from argparse import ArgumentParser

_HELP = """\
Write policies as YAML for kubectl and other tools.

  manage.py export_manifests --cluster prod                       everything, to standard output
  manage.py export_manifests --cluster prod -n web -o web.yaml    one namespace, to a file
  manage.py export_manifests --cluster prod --kind ResourceQuota | kubectl apply -f -
  manage.py export_manifests --cluster prod --admission-configuration -o admission.yaml

The order is fixed, nothing that only servers write is in it, and importing it changes nothing.
limitedResources is not an object but a file of the API server: it has its own option.
Exit code 0: done; 2: wrong usage.
"""


class Command(Console):
    """``manage.py export_manifests``."""

    help = _HELP

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        add = parser.add_argument
        add("--cluster", required=True, help="the cluster whose policies are wanted")
        add(
            "-n",
            "--namespace",
            action="append",
            default=[],
            help="only this namespace (repeatable)",
        )
        add("--kind", action="append", choices=CHOICES, help="only this kind (repeatable)")
        add(
            "--admission-configuration",
            action="store_true",
            help="limitedResources instead, as the file that an API server reads",
        )
        add("-o", "--output", default="-", metavar="FILE", help="default: standard output")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Export to a file or to standard output."""
        cluster = find_cluster(options["cluster"])
        if options["admission_configuration"]:
            exported_yaml = export_limited_resources(cluster)
        else:
            kinds = options["kind"] or KINDS
            exported_yaml = export_cluster(cluster, kinds=kinds, namespaces=options["namespace"])
        if options["output"] == "-":
            self.stdout.write(exported_yaml, ending="")
            return
        try:
            Path(options["output"]).write_text(exported_yaml, encoding="utf-8")
        except OSError as error:
            raise CommandError(f"{error.filename}: {error.strerror}", returncode=USAGE) from error
