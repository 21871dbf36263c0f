"""Decides and charges like admission, one request or several in one transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction

from engine import chain
from engine.request import Phase
from policies import ledger, snapshot
from policies.ledger.book import Book, open_book
from policies.models import Cluster, QuotaUsage

if TYPE_CHECKING:
    from engine.chain import Prepared
    from engine.request import AdmissionRequest

NOW = "2026-01-01T00:00:00Z"


def admit(*requests: AdmissionRequest, in_cluster: str = "prod") -> list[bool]:
    """Decide requests about one namespace in one book; returns which were allowed."""
    cluster_id = Cluster.objects.get(name=in_cluster).pk
    policies = snapshot.load(in_cluster, requests[0].namespace)
    ids = dict(
        QuotaUsage.objects.filter(
            cluster_id=cluster_id, namespace=requests[0].namespace
        ).values_list("quota__name", "quota_id")
    )
    keys = [(cluster_id, *ledger.object_key(request)) for request in requests]
    with transaction.atomic():
        book = open_book(ids.values(), keys, grown=ids.values())
        verdicts = [
            _decide(
                book,
                key,
                ids,
                chain.prepare(request, policies, phase=Phase.VALIDATE, now=NOW),
                request.display_name,
            )
            for key, request in zip(keys, requests, strict=True)
        ]
        book.write()
    return verdicts


def _decide(
    book: Book, key: ledger.Key, ids: dict[str, int], prepared: Prepared, name: str
) -> bool:
    used = {
        quota: book.used(ids[quota], key, prepared.before.get(quota, {}))
        for quota in prepared.quotas
    }
    decision = prepared.decide(used)
    for charge in decision.charges if decision.allowed else ():
        book.charge(ids[charge.quota.name], key, name=name, decided=charge)
    return decision.allowed
