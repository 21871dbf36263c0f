"""The honest baseline: one ORM transaction for each review, as one writes it first.

`atomic`, `select_for_update`, `save`, on the product's own models and engine, behind the lean view.
It must come to the product's verdicts, or its load does not count. Two forms: `loaded` reads
credential and policies for each review, `cached` keeps them in memory and reads only the cluster's
revision. The goals are held against the faster one.
"""

from __future__ import annotations

import functools
import os
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.db import transaction
from django.http import HttpResponse
from django.urls import path
from rest_framework.exceptions import NotAuthenticated

from admission.models import AuditEvent
from admission.record import write
from admission.wire.review import dump_response, parse_request, render_response
from bench.subjects.echoes import LeanView
from engine import chain
from engine.policy import PolicySet
from engine.request import Phase
from engine.resource_list import add, mask, max_of, parse, stored, subtract, to_json
from policies import snapshot
from policies.ledger import object_key
from policies.models import Charge, Namespace, QuotaUsage

if TYPE_CHECKING:
    from rest_framework.request import Request

    from engine.decision import Decision
    from engine.request import AdmissionRequest

IS_CACHED: Final = os.environ["BASELINE_FORM"] == "cached"
_cache: dict[tuple[str, str, int], PolicySet] = {}
_filled: set[tuple[str, int]] = set()
_filling = threading.Lock()


class ReviewView(LeanView):
    """``POST /admission/<cluster>/<key>/validate``."""

    def post(self, request: Request, cluster: str, key: str) -> HttpResponse:
        """Answer one review."""
        started = time.monotonic_ns()
        if authenticate(cluster, key) is not snapshot.Authentication.OK:
            raise NotAuthenticated
        review = parse_request(request._request.body)  # noqa: SLF001 - DRF would parse it
        name, decision = decide(review, cluster, started)
        answer = render_response(
            decision,
            review.uid,
            phase=Phase.VALIDATE,
            decision_id=name,
            external_url=settings.GATEHOUSE_EXTERNAL_URL,
        )
        return HttpResponse(dump_response(answer), content_type="application/json")


authenticate = functools.cache(snapshot.authenticate) if IS_CACHED else snapshot.authenticate


@transaction.atomic
def decide(request: AdmissionRequest, cluster: str, started: int) -> tuple[str, Decision]:
    """Judge a request, charge its quotas and write the record; gives the record's id, too.

    The namespace's used amounts are locked in id order, then this object's own charges are read.
    """
    usage = QuotaUsage.objects.filter(cluster__name=cluster, namespace=request.namespace)
    usage = usage.order_by("quota_id").select_related("quota")
    rows = {r.quota.name: r for r in usage.select_for_update(no_key=True, of=("self",))}
    resource, uid = object_key(request)
    own = Charge.objects.filter(cluster__name=cluster, resource=resource, object_uid=uid)
    charges = {charge.quota_uid: charge for charge in own} if rows else {}
    held = {
        uid: parse(charge.amounts)
        for uid, charge in charges.items()
        if charge.state != Charge.State.RELEASED
    }

    def unused(row: QuotaUsage) -> Any:
        """What is used now, without this very object."""
        return subtract(parse(row.used), mask(held.get(row.quota_uid, {}), row.used))

    revision = snapshot.revision(cluster)
    policies = _policies(cluster, request.namespace, revision)
    quotas = (
        replace(quota, used=unused(rows[quota.name])) if quota.name in rows else quota
        for quota in policies.resource_quotas
    )
    policies = replace(policies, resource_quotas=tuple(quotas))
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    decision = chain.admit(request, policies, phase=Phase.VALIDATE, now=now)
    for entry in decision.charges if decision.allowed else ():
        row = rows[entry.quota.name]
        charge = charges.get(row.quota_uid) or Charge(
            cluster_id=row.cluster_id,
            quota_uid=row.quota_uid,
            namespace=row.namespace,
            resource=resource,
            object_uid=uid,
            object_name=request.display_name,
        )
        # Absolute amounts, which never shrink here.
        charge.amounts = to_json(stored(max_of(entry.amounts, held.get(row.quota_uid, {}))))
        charge.state = Charge.State.RESERVED
        charge.save()
        row.used = to_json(stored(add(unused(row), mask(parse(charge.amounts), row.used))))
        row.save(update_fields=["used"])
    circumstances = write.Circumstances(
        cluster=cluster,
        phase=Phase.VALIDATE,
        client="bench",
        started=started,
        policy_revision=revision,
        policies=write.columns_of_policies(policies),
    )
    name, asked = write.new_decision_id(), write.columns_of(request)
    row = write.row(decision, decision_id=name, request_columns=asked, circumstances=circumstances)
    AuditEvent(**row).save()
    return name, decision


def _policies(cluster: str, namespace: str, revision: int) -> PolicySet:
    if not IS_CACHED:
        return snapshot.load(cluster, namespace)
    with _filling:
        if (cluster, revision) not in _filled:
            # The whole cluster at once, so that no measured review has to read policies.
            for each in Namespace.objects.filter(cluster__name=cluster):
                _cache[cluster, each.name, revision] = snapshot.load(cluster, each.name)
            _filled.add((cluster, revision))
    return _cache.get((cluster, namespace, revision)) or PolicySet()


urlpatterns = [path("admission/<str:cluster>/<str:key>/validate", ReviewView.as_view())]
