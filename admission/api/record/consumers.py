"""``GET /api/v1/resourcequotas/ID/consumers/``: who holds a quota, what it refused, who waits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.permissions import IsAuthenticated
from rest_framework.response import Response
from rest_framework.views import APIView

from admission.record.attempts import caused_by, newest_attempts, waiting_of
from admission.record.consumers import consumers_of, visible_quota
from policies import snapshot
from policies.rest import KnownParameters

if TYPE_CHECKING:
    from rest_framework.request import Request

    from admission.record.attempts import Waiting


class ConsumerSerializer(serializers.Serializer[Any]):
    """The objects of one owner, and what they hold together."""

    name = serializers.CharField()
    resource = serializers.CharField(help_text="as in pods; empty: from before the ledger began")
    number = serializers.IntegerField()
    amounts = serializers.DictField(child=serializers.CharField())
    percent = serializers.IntegerField(help_text="of the limit of the resource in by")


class RefusingPolicySerializer(serializers.Serializer[Any]):
    """A policy that refused objects of the namespace in the last days."""

    kind = serializers.CharField()
    name = serializers.CharField(help_text="empty: a required quota was missing")
    number = serializers.IntegerField()


class WaitingOwnerSerializer(serializers.Serializer[Any]):
    """An owner whose newest attempt was refused."""

    kind = serializers.CharField()
    name = serializers.CharField()
    since = serializers.DateTimeField()
    number = serializers.IntegerField(help_text="attempts that were refused since then")
    decision = serializers.CharField(help_text="the newest of them, under /api/v1/decisions/")


class QuotaConsumersSerializer(serializers.Serializer[Any]):
    """Who uses a quota, and who waits for it."""

    quota = serializers.CharField()
    by = serializers.CharField(help_text="the resource of which most is used; the largest first")
    consumers = ConsumerSerializer(many=True)
    others = serializers.IntegerField(help_text="consumers that are not listed")
    refused_by = RefusingPolicySerializer(many=True, help_text="in the namespace, in seven days")
    waiting = WaitingOwnerSerializer(many=True, help_text="in the namespace, the longest first")


class QuotaConsumersView(KnownParameters, APIView):
    """The consumers of one quota, as its history page shows them."""

    permission_classes = [IsAuthenticated]

    @extend_schema(responses=QuotaConsumersSerializer)
    def get(self, request: Request, pk: int) -> Response:
        """Return consumers, refusals and waiting owners."""
        stored = visible_quota(request.user, pk)
        if stored is None:
            raise NotFound
        cluster, namespace = stored.namespace.cluster, stored.namespace.name
        policies = snapshot.load(cluster.name, namespace).resource_quotas
        quotas = [quota for quota in policies if quota.name == stored.name]
        attempts = newest_attempts(cluster.name, namespace)
        owner_of = {attempt.name: attempt.owner for attempt in attempts if attempt.name}
        held = next(iter(consumers_of(cluster, namespace, quotas, owner_of)), None)
        answer = {
            "quota": stored.name,
            "by": held.by if held else "",
            "consumers": held.consumers if held else [],
            "others": held.others if held else 0,
            "refused_by": caused_by(attempts, cluster.name, namespace),
            "waiting": [_waiting(each) for each in waiting_of(attempts)],
        }
        return Response(QuotaConsumersSerializer(answer).data)


def _waiting(owner: Waiting) -> dict[str, Any]:
    named = {name: getattr(owner, name) for name in ("kind", "name", "since", "number")}
    return {**named, "decision": owner.last.id}
