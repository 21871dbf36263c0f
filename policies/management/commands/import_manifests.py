"""`manage.py import_manifests`: its options; a Bundle imported, changes and hints printed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from policies.management.console import Console, add_user, find_cluster, refused, user_of
from policies.manifests.bundle import DEFAULT_NAMESPACE, read_bundle
from policies.manifests.documents import ManifestError
from policies.manifests.import_bundle import Author, ImportOptions, import_bundle
from policies.manifests.sources import read_sources

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from policies.manifests.import_bundle import Report

_HELP = """\
Import policies from YAML or JSON: LimitRange, MetadataPolicy, ResourceQuota, PriorityClass,
Namespace, NamespaceClass, lists of them, and the quota plugin's limitedResources
(AdmissionConfiguration).

  manage.py import_manifests policies/ --cluster prod --dry-run     show what would change
  manage.py import_manifests policies/ --cluster prod --reason "ticket 4711"
  kubectl get limitrange,quota -A -o yaml | manage.py import_manifests - --cluster prod

A run is all or nothing: one error, and nothing is written. The same run again changes nothing.
Objects that no file names stay as they are. A namespace that neither the cluster nor a file has is
an error, unless --create-namespaces is given. So is a change of a field that was last set by an
edit in the portal, by a cluster or by an applied set, unless --force is given. Other kinds in the
files are left out and named.
Exit code 0: done; 1: errors in the files; 2: wrong usage.
"""


class Command(Console):
    """``manage.py import_manifests``."""

    help = _HELP

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        add = parser.add_argument
        add("paths", nargs="+", metavar="FILE|DIR|-", help="files, folders, - for standard input")
        add("--cluster", required=True, help="the cluster whose policies these are")
        add(
            "-n",
            "--namespace",
            default=DEFAULT_NAMESPACE,
            help="for objects that name none (default: %(default)s)",
        )
        add("--dry-run", action="store_true", help="write nothing, show the changes as a diff")
        add(
            "--create-namespaces",
            action="store_true",
            help="create missing namespaces instead of refusing",
        )
        add(
            "--force",
            action="store_true",
            help="overwrite what others than imports have set, instead of refusing",
        )
        add("--reason", default="", help="why, for the record")
        add_user(parser)

    def handle(self, *_args: Any, **options: Any) -> None:
        """Import the files, and report each change."""
        cluster = find_cluster(options["cluster"])
        importing_user = user_of(options["user"])
        try:
            bundle = read_bundle(read_sources(options["paths"]), namespace=options["namespace"])
            import_report = import_bundle(
                bundle,
                cluster=cluster,
                author=Author(user=importing_user, reason=options["reason"]),
                options=ImportOptions(
                    dry_run=options["dry_run"],
                    create_namespaces=options["create_namespaces"],
                    force=options["force"],
                ),
            )
        except ManifestError as error:
            raise refused(error) from error
        for title in bundle.others:
            self.stderr.write(f"left out, no policy: {title}")
        self._print(import_report, dry_run=options["dry_run"])

    def _print(self, import_report: Report, *, dry_run: bool) -> None:
        verbs = [change.verb for change in import_report.changes]
        for change in import_report.changes:
            if dry_run and change.diff:
                self.stdout.write(change.diff, ending="")
            elif not dry_run:
                self.stdout.write(f"{change.title}: {change.verb}")
        for hint in import_report.hints:
            self.stderr.write(f"hint: {hint}")
        counts = ", ".join(f"{verbs.count(v)} {v}" for v in ("created", "changed", "unchanged"))
        self.stdout.write(f"{counts}{' (dry run: nothing was written)' if dry_run else ''}")
