"""`manage.py sync`: its options; a run requested, followed, shown; pause and resume."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any, Final

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError

from policies.management.console import FINDINGS, USAGE, Console, add_user, find_cluster, user_of
from sync.models import SyncRun
from sync.passes import lifecycle
from sync.passes.advice import advice, connection_of
from sync.runs import pause

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from policies.models import Cluster

_HELP = """\
Request a pass over a cluster: it imports and applies policies until both sides agree.

  manage.py sync prod                    request it; a worker begins within seconds
  manage.py sync prod --follow           the same, and show progress until it has ended
  manage.py sync prod --preview --follow dry runs and differences; nothing is written
  manage.py sync prod --import --follow  nothing is written to the cluster
  manage.py sync prod --now              run it in this process, without broker and worker
  manage.py sync prod --now -o json      for machines
  manage.py sync prod --pause --reason "an upgrade"   send it no requests until it is resumed
  manage.py sync prod --resume           end the pause

--now needs the private key that opens credentials, as the worker has it.
Exit code 0: done, or requested; 1: it failed, objects could not be written, the sync is paused, or
--pause or --resume changes nothing; 2: wrong usage;
3: held, since it would delete too much: a person has to confirm it.
"""
HELD: Final = 3
_INTERVAL: Final = 1.0  # seconds between two reads of the run
_ENDED_STATES: Final = frozenset({"done", "failed", "held", "parked"})


class Command(Console):
    """``manage.py sync``."""

    help = _HELP

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        add = parser.add_argument
        add("cluster", help="the cluster's name")
        mode = parser.add_mutually_exclusive_group()
        mode.add_argument("--preview", action="store_true", help="write nothing anywhere, report")
        mode.add_argument("--import", action="store_true", help="write nothing to the cluster")
        mode.add_argument(
            "--pause", action="store_true", help="send it no requests until it is resumed"
        )
        mode.add_argument("--resume", action="store_true", help="end the pause")
        add("--follow", action="store_true", help="show progress until the run has ended")
        add("--now", action="store_true", help="run it in this process")
        add("--timeout", type=float, default=900.0, help="seconds to follow (default: %(default)s)")
        add_user(parser)
        add("--reason", default="", help="why, for the record; --pause needs it")
        add("-o", "--output", choices=("text", "json"), default="text", help="default: text")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Request the run, carry it out or follow it, and exit with its result."""
        cluster = find_cluster(options["cluster"])
        user = user_of(options["user"])
        if options["pause"] or options["resume"]:
            self._pause(cluster, user=user, reason=options["reason"], resume=options["resume"])
            return
        _require_connection(cluster)
        mode = SyncRun.Mode.IMPORT if options["import"] else SyncRun.Mode.SYNC
        mode = SyncRun.Mode.PREVIEW if options["preview"] else mode
        run = lifecycle.request(cluster, mode=mode, trigger=lifecycle.PERSON, user=user)
        if options["now"]:
            # Until the worker that holds the cluster has ended; a watch gives way at once.
            deadline = time.monotonic() + lifecycle.LEASE
            while lifecycle.carry_out(run.pk) == SyncRun.State.WAITING:
                if time.monotonic() >= deadline:
                    break
                time.sleep(_INTERVAL)
        elif options["follow"]:
            self._follow(run, quiet=options["output"] == "json", patience=options["timeout"])
        run.refresh_from_db()
        self._show(run, output=options["output"])
        _fail_unless_done(run)

    def _pause(self, cluster: Cluster, *, user: str, reason: str, resume: bool) -> None:
        try:
            change = pause.resume if resume else pause.pause
            connection = change(cluster, user=user, reason=reason)
        except ValidationError as error:
            wrong = error.code in ("reason_required", "not_connected")
            message = f"nothing was changed: {' '.join(error.messages)}"
            raise CommandError(message, returncode=USAGE if wrong else FINDINGS) from None
        self.stdout.write(f"{cluster}: {pause.description(connection) or 'resumed'}")

    def _follow(self, run: SyncRun, *, quiet: bool, patience: float) -> None:
        """Print each change of the run's progress, with advice."""
        deadline, last = time.monotonic() + patience, ""
        while run.state not in _ENDED_STATES:
            line = _progress_line(run)
            if line != last and not quiet:
                self.stdout.write(line)
            last = line
            if time.monotonic() > deadline:
                message = f"run {run.uid} is still {run.state}; it continues in the background"
                raise CommandError(message, returncode=FINDINGS)
            time.sleep(_INTERVAL)
            try:
                run.refresh_from_db()
            except SyncRun.DoesNotExist:
                message = f"run {run.uid} made way for one that a person confirmed"
                raise CommandError(message, returncode=FINDINGS) from None

    def _show(self, run: SyncRun, *, output: str) -> None:
        results = list(run.results.all())
        if output == "json":
            names = ("kind", "namespace", "name", "action", "outcome", "message", "differences")
            document = {
                "uid": str(run.uid),
                "cluster": run.cluster.name,
                **{name: getattr(run, name) for name in ("mode", "state", "counts", "error")},
                "results": [{name: getattr(one, name) for name in names} for one in results],
            }
            self.stdout.write(json.dumps(document, indent=2))
            return
        for result in results:
            place = f"{result.namespace}/" if result.namespace else ""
            head = f"{result.kind} {place}{result.name}: {result.action} {result.outcome}"
            self.stdout.write(f"{head} {result.message}".rstrip())
            for one in result.differences:
                if one.get("field"):
                    sides = f"ours {one.get('ours')}, theirs {one.get('theirs')}"
                    self.stdout.write(f"  {one['field']}: {sides}")
        counts = ", ".join(f"{count} {word}" for word, count in sorted(run.counts.items()))
        self.stdout.write(f"run {run.uid}: {run.state}{f' ({counts})' if counts else ''}")


def _require_connection(cluster: Cluster) -> None:
    connection = connection_of(cluster)
    if connection is None:
        message = f"{cluster} is not connected; run: manage.py connect_cluster {cluster}"
        raise CommandError(message, returncode=USAGE)
    if connection.is_paused:
        paused = pause.description(connection)
        message = f"{cluster} is {paused}; run: manage.py sync {cluster} --resume"
        raise CommandError(message, returncode=FINDINGS)


def _progress_line(run: SyncRun) -> str:
    share = f" {run.done} of {run.total}" if run.total else ""
    attempt = f" (attempt {run.attempt})" if run.attempt > 1 else ""
    hint = advice(run)
    line = f"{run.state}: {run.stage}{share}".rstrip(": ") + attempt
    return f"{line}\n  {hint}" if hint else line


def _fail_unless_done(run: SyncRun) -> None:
    """Raise CommandError with the exit code of a run that did not end well."""
    state = SyncRun.State
    if run.state in (state.HELD, state.FAILED, state.PARKED) or run.counts.get("failed"):
        text = "\n".join(filter(None, [run.error or "it failed", advice(run)]))
        raise CommandError(text, returncode=HELD if run.state == state.HELD else FINDINGS)
