"""Views of liveness, readiness and metrics.

Worded as a Kubernetes component words them: ``ok``, or one line for each check with ``?verbose``.
"""

from __future__ import annotations

import hmac
import os
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpResponse
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from psycopg_pool import PoolTimeout

from policies import snapshot
from portal import graceful_shutdown
from portal.auth.callers import is_local
from portal.health import problems
from sync import metrics as cluster_metrics

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from django.http import HttpRequest

    Check = Callable[[], str]  # the reason of a failure, or an empty text

_UNREACHABLE: Final = (DatabaseError, PoolTimeout)
_seen: dict[str, bool] = {}


def check_ping() -> str:
    """Whether the process answers at all."""
    return ""


def check_database() -> str:
    """Whether the database answers a question."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except _UNREACHABLE:
        return "no answer"
    return ""


def check_migrations() -> str:
    """Whether the tables are those this version expects; once they are, they stay so."""
    if _seen.get("migrated"):
        return ""
    try:
        executor = MigrationExecutor(connection)
        missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
    except _UNREACHABLE:
        return "no answer"
    _seen["migrated"] = not missing
    return f"{len(missing)} to be applied: run manage.py migrate" if missing else ""


def check_policies() -> str:
    """Whether all policies are in memory."""
    try:
        snapshot.current()
    except _UNREACHABLE:
        return "not read yet"
    return ""


def check_shutdown() -> str:
    """Whether this process goes on: one that stops still answers, but wants no more reviews."""
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
    """Whether to leave this process running: it does not ask the database."""
    return _answer(request, "livez", LIVE)


def readyz(request: HttpRequest) -> HttpResponse:
    """Whether to send reviews here."""
    return _answer(request, "readyz", READY)


def healthz(request: HttpRequest) -> HttpResponse:
    """The same as ``readyz`` under its older name."""
    return _answer(request, "healthz", READY)


def metrics(request: HttpRequest) -> HttpResponse:
    """What was counted, for Prometheus; behind a token where one is set."""
    if not _may_read_metrics(request):
        hint = "set GATEHOUSE_METRICS_TOKEN and send it: Authorization: Bearer ...\n"
        return HttpResponse(hint, status=401, content_type="text/plain")
    registry = REGISTRY
    if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call] # untyped upstream
    text = generate_latest(registry) + _clusters()
    return HttpResponse(text, content_type=CONTENT_TYPE_LATEST)


def _clusters() -> bytes:
    """What the database knows of the clusters; nothing while it does not answer."""
    try:
        return generate_latest(cluster_metrics.registry) + generate_latest(problems.registry)
    except _UNREACHABLE:
        return b""


PROBES: Final = {"/livez": livez, "/readyz": readyz, "/healthz": healthz, "/metrics": metrics}


def _answer(request: HttpRequest, name: str, checks: Mapping[str, Check]) -> HttpResponse:
    left_out = request.GET.getlist("exclude")
    found = {each: check() for each, check in checks.items() if each not in left_out}
    failed = [each for each, reason in found.items() if reason]
    if not failed and "verbose" not in request.GET:
        return HttpResponse("ok", content_type="text/plain")
    lines = [f"[-]{e} failed: {why}" if why else f"[+]{e} ok" for e, why in found.items()]
    if checks is READY and (wrong := problems.key_problem()):
        # No reason to send reviews elsewhere: it is the same for every process.
        lines.append(f"[!]key {wrong}")
    lines.append(f"{name} check {'failed' if failed else 'passed'}")
    text = "\n".join(lines) + "\n"
    return HttpResponse(text, status=503 if failed else 200, content_type="text/plain")


def _may_read_metrics(request: HttpRequest) -> bool:
    wanted = settings.GATEHOUSE_METRICS_TOKEN
    if not wanted:
        return is_local(request)
    given = request.headers.get("Authorization", "").removeprefix("Bearer ")
    return hmac.compare_digest(given.encode(), wanted.encode())
