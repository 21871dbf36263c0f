"""One review, one transaction: lock, read, think, charge, record."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import transaction

from admission.models import AuditEvent
from admission.record import write
from bench.baseline import ledger
from engine import chain
from engine.policy import PolicySet
from engine.request import Phase
from policies import snapshot
from policies.models import Namespace

if TYPE_CHECKING:
    from engine.decision import Decision
    from engine.request import AdmissionRequest

_cache: dict[tuple[str, str, int], PolicySet] = {}
_filled: set[tuple[str, int]] = set()
_filling = threading.Lock()


def decide(
    request: AdmissionRequest, *, cluster: str, phase: Phase, started: int
) -> tuple[str, Decision]:
    """Judge a request, charge its quotas and write the record; gives the record's id, too."""
    charged = phase is Phase.VALIDATE and not request.dry_run
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    with transaction.atomic():
        book = ledger.open_book(cluster, request) if charged else ledger.Book()
        revision = snapshot.revision(cluster)
        policies = _policies(cluster, request.namespace, revision)
        quotas = tuple(book.as_it_stands(quota) for quota in policies.resource_quotas)
        policies = replace(policies, resource_quotas=quotas)
        decision = chain.admit(request, policies, phase=phase, now=now)
        if charged and decision.allowed:
            book.charge(request, decision.charges)
        circumstances = write.Circumstances(
            cluster=cluster,
            phase=phase,
            client="bench",
            started=started,
            policy_revision=revision,
            policies=write.columns_of_policies(policies),
        )
        name = write.new_decision_id()
        row = write.row(
            decision,
            decision_id=name,
            request_columns=write.columns_of(request),
            circumstances=circumstances,
        )
        AuditEvent(**row).save()
    return name, decision


def _policies(cluster: str, namespace: str, revision: int) -> PolicySet:
    if settings.BASELINE_FORM == "load":
        return snapshot.load(cluster, namespace)
    with _filling:
        if (cluster, revision) not in _filled:
            _fill(cluster, revision)
    return _cache.get((cluster, namespace, revision)) or PolicySet()


def _fill(cluster: str, revision: int) -> None:
    """Read the whole cluster at once, so that no measured review has to."""
    known = Namespace.objects.filter(cluster__name=cluster).values_list("name", flat=True)
    for namespace in known:
        _cache[cluster, namespace, revision] = snapshot.load(cluster, namespace)
    _filled.add((cluster, revision))
