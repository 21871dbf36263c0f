"""Views of what was found: alerts, usage compared with the ledger, and the standing of clusters."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from django.db.models import Count
from django.utils import timezone
from rest_framework import serializers

from policies.api.access import OF_CLUSTERS
from policies.filters import ClusterFilter
from policies.models import Cluster
from policies.openapi import TEXT_MAP, Answered, DescribedField
from sync.api import filters
from sync.api.cluster_part import SyncView
from sync.api.serializers import (
    COUNTS,
    ClusterAlertSerializer,
    SyncRunSerializer,
    UsageComparisonSerializer,
)
from sync.inventory import cluster_states
from sync.models import ClusterAlert, SyncedObject, UsageComparison

if TYPE_CHECKING:
    from sync.models import SyncRun, WebhookHealth


class ClusterAlertView(SyncView):
    """Alerts of the clusters that the caller sees as a whole."""

    queryset = ClusterAlert.objects.select_related("cluster")
    serializer_class = ClusterAlertSerializer
    names: ClassVar = {**OF_CLUSTERS, "whole": True}
    filterset_class = filters.ClusterAlertFilter
    ordering_fields = ("since", "seen", "severity", "kind")


class UsageComparisonView(SyncView):
    """Usage of quotas as the clusters and the ledger count it."""

    queryset = UsageComparison.objects.select_related("cluster")
    serializer_class = UsageComparisonSerializer
    names: ClassVar = {**OF_CLUSTERS, "namespace": "namespace"}
    filterset_class = filters.UsageComparisonFilter
    ordering_fields = ("namespace", "quota", "since", "compared")


class WebhookStandingSerializer(Answered, serializers.Serializer[Any]):
    """Whether the cluster calls the portal's webhooks, and their certificates."""

    state = serializers.ChoiceField(cluster_states.WEBHOOK_STATES)
    checked = serializers.DateTimeField(allow_null=True)
    canary_refused = serializers.BooleanField(
        allow_null=True, help_text="whether a request that must be refused was refused"
    )
    canary_message = serializers.CharField(allow_blank=True)
    canary_milliseconds = serializers.FloatField(allow_null=True)
    mutating_asked = serializers.BooleanField(allow_null=True)
    last_refused = serializers.DateTimeField(allow_null=True)
    configuration = DescribedField(TEXT_MAP, help_text="by webhook: ok, missing or changed")
    certificate_expires = serializers.DateTimeField(allow_null=True)
    certificates = DescribedField(TEXT_MAP, help_text="expiry by certificate")


class TimetableSerializer(Answered, serializers.Serializer[Any]):
    """When passes ended well, and when the next one is due."""

    due = serializers.DateTimeField(allow_null=True)
    failures = serializers.IntegerField(help_text="passes in a row that failed")
    last_success = serializers.DateTimeField(allow_null=True)
    last_full_pass = serializers.DateTimeField(allow_null=True)
    stale_since = serializers.DateTimeField(allow_null=True)


class StandingSerializer(Answered, serializers.Serializer[Any]):
    """A cluster's standing: connection, webhook, object states, alerts, run."""

    cluster = serializers.CharField()
    authority = serializers.CharField()
    connection = serializers.ChoiceField(cluster_states.CONNECTION_STATES)
    webhook = WebhookStandingSerializer()
    objects = DescribedField(COUNTS, help_text="objects that are compared, by state")
    alerts = serializers.IntegerField(help_text="open alerts")
    run = SyncRunSerializer(allow_null=True, help_text="the run that waits or is in progress")
    timetable = TimetableSerializer(allow_null=True)

    def to_representation(self, instance: Cluster) -> dict[str, Any]:
        """Put together what is kept in several tables."""
        counts: Counted = self.context["view"].counted
        run = counts.runs.get(instance.pk)
        timetable = getattr(instance, "sync_state", None)
        return {
            "cluster": instance.name,
            "authority": instance.authority,
            "connection": cluster_states.connection_state(instance),
            "webhook": _webhook(instance),
            "objects": dict(counts.states.get(instance.pk, {})),
            "alerts": counts.alerts.get(instance.pk, 0),
            "run": SyncRunSerializer(run).data if run else None,
            "timetable": TimetableSerializer(timetable).data if timetable else None,
        }


class Counted:
    """Counts of all clusters, read once for a list: as joins they would multiply each other."""

    def __init__(self, clusters: Any) -> None:
        self.states: dict[int, Counter[str]] = {}
        objects = SyncedObject.objects.filter(cluster__in=clusters)
        for cluster, state, number in cluster_states.counted_states(objects):
            self.states.setdefault(cluster, Counter())[state] = number
        open_alerts = cluster_states.open_alerts().filter(cluster__in=clusters).order_by()
        self.alerts: dict[int, int] = dict(open_alerts.values_list("cluster").annotate(Count("id")))
        under_way = (
            cluster_states.under_way().filter(cluster__in=clusters).select_related("cluster")
        )
        self.runs: dict[int, SyncRun] = {run.cluster_id: run for run in under_way}


def _webhook(cluster: Cluster) -> dict[str, Any]:
    health: WebhookHealth | None = getattr(cluster, "webhook_health", None)
    fields = WebhookStandingSerializer().fields.keys() - {"state", "configuration"}
    found = {name: getattr(health, name) for name in fields} if health else {}
    texts: dict[str, Any] = {"canary_message": "", "certificates": {}}
    return {
        **dict.fromkeys(fields),
        **texts,
        **found,
        "state": cluster_states.webhook_state(cluster, timezone.now()),
        "configuration": cluster_states.webhook_words(health) if health else {},
    }


class StandingView(SyncView):
    """The standing of the clusters that the caller sees as a whole, by name."""

    queryset = Cluster.objects.select_related("connection", "sync_state", "webhook_health")
    serializer_class = StandingSerializer
    names: ClassVar = {"cluster": "name", "whole": True}
    filterset_class = ClusterFilter
    ordering_fields = ("name", "created", "updated")
    lookup_field = "name"
    lookup_value_regex = "[-a-z0-9]+"

    @cached_property
    def counted(self) -> Counted:
        """The counts of all clusters that the caller sees; read when the first is shown."""
        return Counted(self.get_queryset())
