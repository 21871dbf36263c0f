"""Synchronize a cluster now, and show how it goes."""

from __future__ import annotations

import getpass
import json
import time
from typing import TYPE_CHECKING, Any, Final

from django.core.management.base import CommandError

from policies.management.console import FINDINGS, USAGE, Console, find_cluster
from policies.models import ClusterConnection, SyncRun
from policies.sync import runs

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from policies.models import Cluster, SyncResult

_HELP = """\
Ask for a pass over a cluster: policies go out, come in, and stay the same on both sides.

  manage.py sync prod                    ask for it; beat finds it in seconds
  manage.py sync prod --follow           the same, and show progress until it has ended
  manage.py sync prod --preview --follow try it: dry runs and differences, nothing is written
  manage.py sync prod --import --follow  read only: nothing is written to the cluster
  manage.py sync prod --now              do it here, in this process; needs no broker, no worker
  manage.py sync prod --now -o json      for machines

--now needs the private key with which credentials are opened, as the worker has it.
Exit code 0: done, or asked for; 1: it failed, or objects could not be written; 2: wrong usage;
3: held, since it would delete too much: a person has to confirm it.
"""
HELD: Final = 3
_PATIENCE: Final = 1.0  # seconds between two looks
_OVER: Final = frozenset({"done", "failed", "held", "parked"})


class Command(Console):
    """``manage.py sync``."""

    help = _HELP

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare what can be said."""
        add = parser.add_argument
        add("cluster", help="its name")
        mode = parser.add_mutually_exclusive_group()
        mode.add_argument("--preview", action="store_true", help="write nothing anywhere, tell")
        mode.add_argument("--import", action="store_true", help="write nothing to the cluster")
        add("--follow", action="store_true", help="show progress until the run has ended")
        add("--now", action="store_true", help="do it in this process")
        add("--timeout", type=float, default=900.0, help="seconds to follow (default: %(default)s)")
        add("--user", default="", help="who, for the record (default: the system's user)")
        add("-o", "--output", choices=("text", "json"), default="text", help="default: text")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Ask, follow, and end as the run did."""
        cluster = find_cluster(options["cluster"])
        _require_connection(cluster)
        user = options["user"] or f"{getpass.getuser()} (command line)"
        run = runs.request(cluster, mode=_mode(options), trigger=runs.PERSON, user=user)
        if options["now"]:
            _carry_out_here(run)
        elif options["follow"]:
            self._follow(run, quiet=options["output"] == "json", patience=options["timeout"])
        run.refresh_from_db()
        self._show(run, output=options["output"])
        _end(run)

    def _follow(self, run: SyncRun, *, quiet: bool, patience: float) -> None:
        """Print a line whenever something moved."""
        deadline, last = time.monotonic() + patience, ""
        while run.state not in _OVER:
            line = _progress(run)
            if line != last and not quiet:
                self.stdout.write(line)
            last = line
            if time.monotonic() > deadline:
                message = f"run {run.uid} is still {run.state}; it goes on without us"
                raise CommandError(message, returncode=FINDINGS)
            time.sleep(_PATIENCE)
            run.refresh_from_db()

    def _show(self, run: SyncRun, *, output: str) -> None:
        results = list(run.results.all())
        if output == "json":
            self.stdout.write(json.dumps(_document(run, results), indent=2))
            return
        for result in results:
            self.stdout.write(_line(result))
        counts = ", ".join(f"{count} {word}" for word, count in sorted(run.counts.items()))
        self.stdout.write(f"run {run.uid}: {run.state}{f' ({counts})' if counts else ''}")


def _mode(options: dict[str, Any]) -> str:
    if options["preview"]:
        return SyncRun.Mode.PREVIEW
    return SyncRun.Mode.IMPORT if options["import"] else SyncRun.Mode.SYNC


def _require_connection(cluster: Cluster) -> None:
    if not ClusterConnection.objects.filter(cluster=cluster).exists():
        message = f"{cluster} is not connected; run: manage.py connect_cluster {cluster}"
        raise CommandError(message, returncode=USAGE)


def _carry_out_here(run: SyncRun) -> None:
    """Do the work, once whoever works on the cluster has ended; a watch gives way to us."""
    deadline = time.monotonic() + runs.LEASE
    while runs.carry_out(run.pk) == SyncRun.State.WAITING and time.monotonic() < deadline:
        time.sleep(_PATIENCE)


def _progress(run: SyncRun) -> str:
    share = f" {run.done} of {run.total}" if run.total else ""
    return f"{run.state}: {run.stage}{share}".rstrip(": ")


def _line(result: SyncResult) -> str:
    place = f"{result.namespace}/" if result.namespace else ""
    head = f"{result.kind} {place}{result.name}: {result.action} {result.outcome}"
    fields = [_difference(one) for one in result.differences if one.get("field")]
    return "\n".join([f"{head} {result.message}".rstrip(), *fields])


def _difference(one: dict[str, Any]) -> str:
    return f"  {one['field']}: ours {one.get('ours')}, theirs {one.get('theirs')}"


def _document(run: SyncRun, results: list[SyncResult]) -> dict[str, Any]:
    names = ("kind", "namespace", "name", "action", "outcome", "message", "differences")
    return {
        "uid": str(run.uid),
        "cluster": run.cluster.name,
        "mode": run.mode,
        "state": run.state,
        "counts": run.counts,
        "error": run.error,
        "results": [{name: getattr(result, name) for name in names} for result in results],
    }


def _end(run: SyncRun) -> None:
    """Raise what the run's end means for the exit code."""
    state = SyncRun.State
    if run.state == state.HELD:
        raise CommandError(run.error, returncode=HELD)
    if run.state in (state.FAILED, state.PARKED) or run.counts.get("failed"):
        raise CommandError(run.error or "it failed", returncode=FINDINGS)
