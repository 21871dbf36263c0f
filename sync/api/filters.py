"""FilterSets (django-filter) of runs, results, synced objects, ownerships, alerts, comparisons."""

from __future__ import annotations

from typing import ClassVar, Final

import django_filters

from policies.filters import ClusterFilter
from policies.lists.selection import CharInFilter, ChoiceInFilter, ContainsFilter, TrueFalseFilter
from sync.models import (
    ClusterAlert,
    SyncedObject,
    SyncOwnership,
    SyncResult,
    SyncRun,
    UsageComparison,
)

_TEXT: Final = ["exact", "in"]
_TIME: Final = ["gte", "gt", "lte", "lt"]


class _SyncListOptions:
    """``Meta`` of all: times are read as everywhere in the API."""

    filter_overrides: ClassVar = ClusterFilter.Meta.filter_overrides


class _PlaceFilter(django_filters.FilterSet):
    cluster = django_filters.CharFilter(field_name="cluster__name", label="Cluster")
    cluster__in = CharInFilter(field_name="cluster__name", label="Cluster, one of")


class SyncRunFilter(_PlaceFilter):
    """Runs by cluster, mode, state, trigger, user and time."""

    mode__in = ChoiceInFilter(field_name="mode", choices=SyncRun.Mode.choices)
    state__in = ChoiceInFilter(field_name="state", choices=SyncRun.State.choices)

    class Meta(_SyncListOptions):
        model = SyncRun
        fields: ClassVar = {
            "mode": ["exact"],
            "state": ["exact"],
            "trigger": _TEXT,
            "user": _TEXT,
            "created": _TIME,
            "finished": _TIME,
        }


class SyncResultFilter(django_filters.FilterSet):
    """Results of a run by object, action and outcome."""

    outcome__in = ChoiceInFilter(field_name="outcome", choices=SyncResult.Outcome.choices)

    class Meta(_SyncListOptions):
        model = SyncResult
        fields: ClassVar = {
            **dict.fromkeys(("kind", "namespace", "name", "action"), _TEXT),
            "outcome": ["exact"],
        }


class SyncedObjectFilter(_PlaceFilter):
    """Synced objects by place, kind, name, state, and the time since when they are in it."""

    name = django_filters.CharFilter(lookup_expr="icontains")
    name__exact = django_filters.CharFilter(field_name="name")
    name__in = CharInFilter(field_name="name")
    name__contains = ContainsFilter(field_name="name")
    state__in = ChoiceInFilter(field_name="state", choices=SyncedObject.State.choices)

    class Meta(_SyncListOptions):
        model = SyncedObject
        fields: ClassVar = {
            "namespace": _TEXT,
            "kind": _TEXT,
            "state": ["exact"],
            "since": _TIME,
            "seen": _TIME,
        }


class SyncOwnershipFilter(_PlaceFilter):
    """Ownerships by place, kind, user and time."""

    class Meta(_SyncListOptions):
        model = SyncOwnership
        fields: ClassVar = {
            **dict.fromkeys(("namespace", "kind", "name", "user"), _TEXT),
            "created": _TIME,
        }


class ClusterAlertFilter(_PlaceFilter):
    """Alerts by cluster, kind, severity, time, and whether they are open."""

    open = TrueFalseFilter(field_name="resolved", lookup_expr="isnull", label="Open")

    class Meta(_SyncListOptions):
        model = ClusterAlert
        fields: ClassVar = {
            "kind": _TEXT,
            "subject": _TEXT,
            "severity": ["exact"],
            "since": _TIME,
            "seen": _TIME,
            "resolved": _TIME,
        }


class UsageComparisonFilter(_PlaceFilter):
    """Comparisons by quota, time, and whether both sides differ."""

    differs = TrueFalseFilter(
        field_name="since", lookup_expr="isnull", exclude=True, label="Differs"
    )

    class Meta(_SyncListOptions):
        model = UsageComparison
        fields: ClassVar = {
            "namespace": _TEXT,
            "quota": _TEXT,
            "compared": _TIME,
            "since": _TIME,
        }
