"""Views of probes and metrics: ``/livez``, ``/readyz``, ``/metrics``; named checks, verbose lines.

They answer like a Kubernetes component: ``ok``, or one line for each check with ``?verbose``.
"""

from __future__ import annotations

import hmac
import os
from contextlib import suppress
from threading import Event
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpResponse
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from psycopg_pool import PoolTimeout

from admission.rollout import metrics as rollout_metrics
from policies import snapshot
from portal import graceful_shutdown
from portal.auth.callers import is_local
from portal.health import problems
from sync import metrics as cluster_metrics

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from django.http import HttpRequest

    Check = Callable[[], str]  # the reason of a failure, or an empty text

_NO_DATABASE: Final = (DatabaseError, PoolTimeout)
migrated: Final = Event()
"""Set once no migration is missing: this process never asks again."""


def check_ping() -> str:
    """Whether the process answers at all."""
    return ""


def check_database() -> str:
    """Whether the database answers a query."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except _NO_DATABASE:
        return "no answer"
    return ""


def check_migrations() -> str:
    """Whether the tables are those that this version expects; once they are, they stay so."""
    if migrated.is_set():
        return ""
    try:
        executor = MigrationExecutor(connection)
        missing_migrations = executor.migration_plan(executor.loader.graph.leaf_nodes())
    except _NO_DATABASE:
        return "no answer"
    if missing_migrations:
        return f"{len(missing_migrations)} to be applied: run manage.py migrate"
    migrated.set()
    return ""


def check_policies() -> str:
    """Whether all policies are in memory."""
    try:
        snapshot.current()
    except _NO_DATABASE:
        return "not read yet"
    return ""


def check_shutdown() -> str:
    """Whether this process keeps running: a stopping one still answers, but wants no reviews."""
    return "the portal stops" if graceful_shutdown.state.is_stopping else ""


LIVE: Final[Mapping[str, Check]] = {"ping": check_ping}
READY: Final[Mapping[str, Check]] = {
    "ping": check_ping,
    "database": check_database,
    "migrations": check_migrations,
    "policies": check_policies,
    "shutdown": check_shutdown,
}


def livez(request: HttpRequest) -> HttpResponse:
    """Whether to keep this process running; does not query the database."""
    return _answer_checks(request, "livez", LIVE)


def readyz(request: HttpRequest) -> HttpResponse:
    """Whether to send reviews to this process."""
    return _answer_checks(request, "readyz", READY)


def healthz(request: HttpRequest) -> HttpResponse:
    """``readyz`` under its older name."""
    return _answer_checks(request, "healthz", READY)


def metrics(request: HttpRequest) -> HttpResponse:
    """Metrics for Prometheus; callers need the token if one is set."""
    if not _may_read_metrics(request):
        metrics_hint = "set GATEHOUSE_METRICS_TOKEN and send it: Authorization: Bearer ...\n"
        return HttpResponse(metrics_hint, status=401, content_type="text/plain")
    registry = REGISTRY
    if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call] # untyped upstream
    exposed = generate_latest(registry)
    # These are read from the database; without it, the counters above are still worth having.
    with suppress(*_NO_DATABASE):
        for read in (cluster_metrics.registry, rollout_metrics.registry, problems.registry):
            exposed += generate_latest(read)
    return HttpResponse(exposed, content_type=CONTENT_TYPE_LATEST)


PROBES: Final = {"/livez": livez, "/readyz": readyz, "/healthz": healthz, "/metrics": metrics}


def _answer_checks(request: HttpRequest, probe: str, checks: Mapping[str, Check]) -> HttpResponse:
    excluded_checks = request.GET.getlist("exclude")
    reasons = {name: check() for name, check in checks.items() if name not in excluded_checks}
    failed_checks = [name for name, reason in reasons.items() if reason]
    if not failed_checks and "verbose" not in request.GET:
        return HttpResponse("ok", content_type="text/plain")
    check_lines = [f"[-]{e} failed: {why}" if why else f"[+]{e} ok" for e, why in reasons.items()]
    if checks is READY and (wrong := problems.key_problem()):
        # Not a failure of readiness: every process has the same key, and none would be ready.
        check_lines.append(f"[!]key {wrong}")
    check_lines.append(f"{probe} check {'failed' if failed_checks else 'passed'}")
    verbose = "\n".join(check_lines) + "\n"
    return HttpResponse(verbose, status=503 if failed_checks else 200, content_type="text/plain")


def _may_read_metrics(request: HttpRequest) -> bool:
    metrics_token = settings.GATEHOUSE_METRICS_TOKEN
    if not metrics_token:
        return is_local(request)
    given_token = request.headers.get("Authorization", "").removeprefix("Bearer ")
    return hmac.compare_digest(given_token.encode(), metrics_token.encode())
