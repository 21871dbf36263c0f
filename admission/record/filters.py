"""AuditEventFilter (django-filter) of pages, DecisionFilter of REST; filters of views and holds."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

import django_filters
from django import forms
from django.core.exceptions import ValidationError
from django.db.models import Q, TextField
from django.db.models.functions import Cast
from django.db.models.lookups import Contains

from admission.models import (
    AnswerKind,
    AuditEvent,
    AuditEventQuerySet,
    AuditHold,
    Replay,
    SavedView,
    conditions,
)
from admission.record.search.words import LONGEST, Word, fault_of, words_of
from policies.lists.selection import (
    CharInFilter,
    ChoiceInFilter,
    ContainsFilter,
    TrueFalseFilter,
    UtcFilter,
    WholeNumberFilter,
)
from policies.rest import MOMENTS

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_MOMENT_INPUT = forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M")
DRY_RUN_CHOICES = [("false", "No"), ("true", "Yes")]
LAST_CHOICES = [
    ("1h", "1 hour"),
    ("6h", "6 hours"),
    ("24h", "24 hours"),
    ("7d", "7 days"),
    ("30d", "30 days"),
]
LENGTHS: Final = {
    "1h": timedelta(hours=1),
    "6h": timedelta(hours=6),
    "24h": timedelta(hours=24),
    "7d": timedelta(days=7),
    "30d": timedelta(days=30),
}
PHASE_CHOICES = [("mutate", "Mutate"), ("validate", "Validate")]
OPERATION_CHOICES = [
    (operation, operation.capitalize()) for operation in ("CREATE", "UPDATE", "DELETE", "CONNECT")
]
MOST_EXCLUDED: Final = 50
"""Words of one query that exclude: each costs something for each row."""


def _has_priority(priority_class: str) -> Q:
    """Pods of this priority class; older rows, without a column for it, are searched as text."""
    in_text = Q(pk__in=[])
    # Rows saved through the model escape letters beyond ASCII, rows of the writer do not.
    for is_ascii in {True, priority_class.isascii()}:
        class_text = json.dumps(priority_class, ensure_ascii=is_ascii)
        needle = f'"priorityClassName":{class_text}'
        in_text |= Q(Contains(Cast("old_request", TextField()), needle))
    return Q(priority_class=priority_class) | Q(old_request__isnull=False) & in_text


_EXCLUDED: Final[dict[str, Callable[[str], Q]]] = {
    "cluster": lambda value: Q(cluster=value),
    "namespace": lambda value: Q(namespace=value),
    "kind": lambda value: Q(kind=value),
    "name": lambda value: conditions.begins("name", value),
    "user": lambda value: conditions.begins("user", value),
    "verdict": conditions.has_outcome,
    "reason": conditions.has_reason,
    "policy": conditions.evaluated,
    "operation": lambda value: Q(operation=value),
    "priority": _has_priority,
    "dry_run": lambda value: Q(dry_run=value == "true"),
    "phase": lambda value: Q(phase=value),
    "request_uid": lambda value: Q(request_uid=value),
}
"""The condition of each field; the same as of the filter of its name."""
_KNOWN_VALUES: Final = {
    "verdict": AnswerKind.values,
    "operation": [operation for operation, _ in OPERATION_CHOICES],
    "dry_run": [truth for truth, _ in DRY_RUN_CHOICES],
    "phase": [phase for phase, _ in PHASE_CHOICES],
}


def check_exclusions(text: str) -> None:
    """Raise ``ValidationError`` for words of a query that nothing can be excluded by."""
    excluded = list(words_of(text))
    if len(excluded) > MOST_EXCLUDED:
        message = f"There are {len(excluded)} words; at most {MOST_EXCLUDED} can exclude."
        raise ValidationError(message, code="too_many_words")
    for word in excluded:
        if fault := fault_of(word, is_excluded=True):
            raise ValidationError(fault, code="unknown_field")
        known = _KNOWN_VALUES.get(word.field)
        if known and word.value not in known:
            values = ", ".join(Word(word.key, value).typed_value for value in known)
            message = f"“-{word}” is not known; there are {values}."
            raise ValidationError(message, code="unknown_value")


class AuditEventFilter(django_filters.FilterSet):
    """Every field narrows the list; ``name`` and ``user`` match their beginning, texts exactly."""

    cluster = django_filters.CharFilter(label="Cluster")
    namespace = django_filters.CharFilter(label="Namespace")
    kind = django_filters.CharFilter(label="Kind")
    name = django_filters.CharFilter(label="Name", method="with_name")
    user = django_filters.CharFilter(label="User", method="with_user")
    verdict = django_filters.ChoiceFilter(
        label="Verdict", choices=AnswerKind.choices, empty_label="Any", method="with_verdict"
    )
    phase = django_filters.ChoiceFilter(label="Phase", choices=PHASE_CHOICES, empty_label="Any")
    reason = django_filters.CharFilter(label="Reason", method="with_reason")
    policy = django_filters.CharFilter(label="Policy", method="with_policy")
    operation = django_filters.ChoiceFilter(
        label="Operation", choices=OPERATION_CHOICES, empty_label="Any"
    )
    dry_run = django_filters.TypedChoiceFilter(
        label="Dry run",
        choices=[("", "Any"), *DRY_RUN_CHOICES],
        coerce=lambda text: text == "true",
    )
    priority = django_filters.CharFilter(
        label="Priority class", method="with_priority", max_length=253
    )
    request_uid = django_filters.CharFilter(label="Request UID")
    last = django_filters.ChoiceFilter(
        label="The last", choices=LAST_CHOICES, empty_label="Any time", method="within"
    )
    since = UtcFilter(
        label="From (UTC)",
        field_name="created",
        lookup_expr="gte",
        widget=_MOMENT_INPUT,
        validators=MOMENTS,
    )
    until = UtcFilter(
        label="Before (UTC)",
        field_name="created",
        lookup_expr="lt",
        widget=_MOMENT_INPUT,
        validators=MOMENTS,
    )
    exclude = django_filters.CharFilter(
        label="Exclude", method="without", max_length=LONGEST, validators=[check_exclusions]
    )

    class Meta:
        """The filters above, no others."""

        model = AuditEvent
        fields: list[str] = []

    def with_verdict(
        self, queryset: AuditEventQuerySet, _name: str, value: Any
    ) -> AuditEventQuerySet:
        """Events of one outcome: what warn and audit found is neither allowed nor mutated."""
        return queryset.with_outcome(value)

    def with_name(self, queryset: AuditEventQuerySet, _name: str, value: Any) -> AuditEventQuerySet:
        """Events about objects whose name begins with this text."""
        return queryset.name_begins(value)

    def with_user(self, queryset: AuditEventQuerySet, _name: str, value: Any) -> AuditEventQuerySet:
        """Events of users whose name begins with this text."""
        return queryset.user_begins(value)

    def with_reason(
        self, queryset: AuditEventQuerySet, _name: str, value: Any
    ) -> AuditEventQuerySet:
        """Events with this reason."""
        return queryset.for_reason(value)

    def with_policy(
        self, queryset: AuditEventQuerySet, _name: str, value: Any
    ) -> AuditEventQuerySet:
        """Events that evaluated this policy."""
        return queryset.for_policy(value)

    def with_priority(
        self, queryset: AuditEventQuerySet, _name: str, priority_class: Any
    ) -> AuditEventQuerySet:
        """Events about pods of this priority class; the record is searched as text."""
        return queryset.filter(_has_priority(priority_class))

    def within(self, queryset: AuditEventQuerySet, _name: str, value: Any) -> AuditEventQuerySet:
        """Events of this long until now."""
        return queryset.filter(created__gte=datetime.now(UTC) - LENGTHS[value])

    def without(self, queryset: AuditEventQuerySet, _name: str, value: Any) -> AuditEventQuerySet:
        """Events that fit none of these words of a query."""
        return queryset.filter(*(~_EXCLUDED[word.field](word.value) for word in words_of(value)))


class DecisionFilter(AuditEventFilter):
    """The same, and one of several clusters, namespaces, kinds or outcomes.

    A search reads the record by stretches of days: other lookups would read all of it.
    """

    dry_run = TrueFalseFilter(label="Dry run")
    cluster__in = CharInFilter(field_name="cluster", label="Cluster, one of")
    namespace__in = CharInFilter(field_name="namespace", label="Namespace, one of")
    kind__in = CharInFilter(field_name="kind", label="Kind, one of")
    verdict__in = ChoiceInFilter(
        label="Verdict, one of", choices=AnswerKind.choices, method="with_any_verdict"
    )

    def with_any_verdict(
        self, queryset: AuditEventQuerySet, _name: str, value: Any
    ) -> AuditEventQuerySet:
        """Events of one of these outcomes."""
        return queryset.with_outcomes(value)


class SavedViewFilter(django_filters.FilterSet):
    """Saved views by name, owner, and whether they are shared."""

    owner = django_filters.CharFilter(field_name="owner__username", label="Owner")
    name = django_filters.CharFilter(lookup_expr="icontains")
    name__exact = django_filters.CharFilter(field_name="name")
    name__in = CharInFilter(field_name="name")
    name__contains = ContainsFilter(field_name="name")
    shared = TrueFalseFilter(field_name="is_shared", label="Shared")

    class Meta:
        """The filters above, no others."""

        model = SavedView
        fields: list[str] = []


class LegalHoldFilter(django_filters.FilterSet):
    """Holds by place, and whether they are released."""

    cluster = django_filters.CharFilter()
    cluster__in = CharInFilter(field_name="cluster")
    namespace = django_filters.CharFilter()
    namespace__in = CharInFilter(field_name="namespace")
    released = TrueFalseFilter(
        field_name="released", lookup_expr="isnull", exclude=True, label="Released"
    )

    class Meta:
        """The filters above, no others."""

        model = AuditHold
        fields: list[str] = []


class ReplayFilter(django_filters.FilterSet):
    """Replays by place, state, user and change set."""

    cluster = django_filters.CharFilter()
    cluster__in = CharInFilter(field_name="cluster")
    state = django_filters.ChoiceFilter(choices=Replay.State.choices)
    state__in = ChoiceInFilter(field_name="state", choices=Replay.State.choices)
    user = django_filters.CharFilter(label="User")
    change_set = WholeNumberFilter(label="Change set")

    class Meta:
        """The filters above, no others."""

        model = Replay
        fields: list[str] = []
