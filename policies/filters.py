"""FilterSets (django-filter) of REST lists: by place, name, state, revision and time.

A text takes its exact value and ``__in``, a name also ``__contains``, a number and a time ranges.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

import django_filters
from django.db import models

from engine.policy import Enforcement
from policies import roles
from policies.change_sets.states import ChangeState
from policies.lists.selection import (
    CharInFilter,
    ChoiceInFilter,
    ContainsFilter,
    IsoUtcFilter,
    TrueFalseFilter,
    WholeNumberFilter,
)
from policies.models import (
    ApiToken,
    ApprovalRule,
    ApprovalRuleChange,
    ChangeItem,
    ChangeSet,
    Charge,
    ClassMember,
    ClassPolicy,
    Cluster,
    KeptTest,
    LedgerEntry,
    LimitRange,
    MetadataPolicy,
    Namespace,
    NamespaceClass,
    PolicyRevision,
    PriorityClass,
    ResourceQuota,
    RoleBinding,
    RoleChange,
    ServiceAccount,
    WebhookCredential,
)
from policies.rest import MOMENTS

_TEXT: Final = ["exact", "in"]
_NUMBER: Final = ["gte", "lte"]
_TIME: Final = ["gte", "gt", "lte", "lt"]
_RECORDED: Final = {"created": _TIME, "updated": _TIME, "revision": _NUMBER}
_ENFORCEMENTS: Final = [(mode.value, mode.value) for mode in Enforcement]


class _ListOptions:
    """``Meta`` of all: how django-filter reads times and numbers."""

    filter_overrides: ClassVar[dict[type[models.Field[Any, Any]], dict[str, Any]]] = {
        models.DateTimeField: {
            "filter_class": IsoUtcFilter,
            "extra": lambda _field: {"validators": MOMENTS},
        },
        models.PositiveBigIntegerField: {"filter_class": WholeNumberFilter},
    }


class _NameFilter(django_filters.FilterSet):
    name = django_filters.CharFilter(lookup_expr="icontains")
    name__exact = django_filters.CharFilter(field_name="name")
    name__in = CharInFilter(field_name="name")
    name__contains = ContainsFilter(field_name="name")


class ClusterFilter(_NameFilter):
    """Clusters by name, revision and time."""

    class Meta(_ListOptions):
        model = Cluster
        fields: ClassVar = _RECORDED


class NamespaceClassFilter(_NameFilter):
    """Namespace classes by name, version and time."""

    class Meta(_ListOptions):
        model = NamespaceClass
        fields: ClassVar = {"created": _TIME, "updated": _TIME, "version": _NUMBER}


class _OfClassFilter(django_filters.FilterSet):
    namespaceClass = django_filters.CharFilter(  # noqa: N815 - in the style of Kubernetes
        field_name="namespace_class__name", label="Class"
    )
    cluster = django_filters.CharFilter(field_name="namespace__cluster__name", label="Cluster")
    namespace = django_filters.CharFilter(field_name="namespace__name", label="Namespace")


class ClassMemberFilter(_OfClassFilter):
    """Namespaces of classes by class, place and version."""

    has_left = TrueFalseFilter(field_name="has_left")

    class Meta(_ListOptions):
        model = ClassMember
        fields: ClassVar = {"version": _NUMBER}


class ClassPolicyFilter(_OfClassFilter):
    """Policies of classes by class, place and object; those with exceptions."""

    exceptions = WholeNumberFilter(field_name="exception_count", lookup_expr="gte")

    class Meta(_ListOptions):
        model = ClassPolicy
        fields: ClassVar = {"kind": ["exact"], "name": ["exact"], "version": _NUMBER}


class _OfClusterFilter(django_filters.FilterSet):
    cluster = django_filters.CharFilter(field_name="cluster__name", label="Cluster")
    cluster__in = CharInFilter(field_name="cluster__name", label="Cluster, one of")


class NamespaceFilter(_OfClusterFilter, _NameFilter):
    """Namespaces by cluster, name, phase, revision and time."""

    phase__in = ChoiceInFilter(field_name="phase", choices=Namespace.Phase.choices)

    class Meta(_ListOptions):
        model = Namespace
        fields: ClassVar = {"phase": ["exact"], **_RECORDED}


class PriorityClassFilter(_OfClusterFilter, _NameFilter):
    """Priority classes by cluster, name, default, revision and time."""

    global_default = TrueFalseFilter()

    class Meta(_ListOptions):
        model = PriorityClass
        fields: ClassVar = _RECORDED


class _InNamespaceFilter(_NameFilter):
    cluster = django_filters.CharFilter(field_name="namespace__cluster__name", label="Cluster")
    cluster__in = CharInFilter(field_name="namespace__cluster__name", label="Cluster, one of")
    namespace = django_filters.CharFilter(field_name="namespace__name", label="Namespace")
    namespace__in = CharInFilter(field_name="namespace__name", label="Namespace, one of")


class KeptTestFilter(_InNamespaceFilter):
    """Tests by place, name, the decision that they were kept from, author, revision and time."""

    decision = django_filters.CharFilter(field_name="spec__decision", label="Decision")
    author = django_filters.CharFilter(label="Author")

    class Meta(_ListOptions):
        model = KeptTest
        fields: ClassVar = _RECORDED


_STATES: Final = [(state.value, state.words) for state in ChangeState]


class ApprovalRuleFilter(django_filters.FilterSet):
    """Rules of approval by name, and whether they are in force."""

    name = django_filters.CharFilter(label="Name")
    enabled = TrueFalseFilter()

    class Meta(_ListOptions):
        model = ApprovalRule
        fields: ClassVar = {"created": _TIME, "updated": _TIME}


class ApprovalRuleChangeFilter(django_filters.FilterSet):
    """Writes of rules by rule, action, user and time."""

    rule = django_filters.CharFilter(label="Rule")
    actor = django_filters.CharFilter(label="Actor")

    class Meta(_ListOptions):
        model = ApprovalRuleChange
        fields: ClassVar = {"action": ["exact"], "created": _TIME}


class ChangeFilter(django_filters.FilterSet):
    """Changes by state, author, the places of their objects, and time."""

    state = django_filters.ChoiceFilter(choices=_STATES)
    state__in = ChoiceInFilter(field_name="state", choices=_STATES)
    author = django_filters.CharFilter(label="Author")
    unreviewed = TrueFalseFilter()
    cluster = django_filters.CharFilter(method="with_object", label="Cluster")
    namespace = django_filters.CharFilter(method="with_object", label="Namespace")

    class Meta(_ListOptions):
        model = ChangeSet
        fields: ClassVar = {"created": _TIME, "updated": _TIME}

    def with_object(
        self, rows: models.QuerySet[ChangeSet], name: str, value: str
    ) -> models.QuerySet[ChangeSet]:
        """Changes with an object in a cluster or namespace, as far as the user sees objects."""
        objects = roles.visible(
            ChangeItem.objects.filter(**{name: value}), self.request.user,
            cluster="cluster", namespace="namespace",
        )  # fmt: skip
        return rows.filter(pk__in=objects.order_by().values("change"))


class _PolicyFilter(_InNamespaceFilter):
    enforcement = django_filters.ChoiceFilter(choices=_ENFORCEMENTS)
    enforcement__in = ChoiceInFilter(field_name="enforcement", choices=_ENFORCEMENTS)


class _ResourceFilter(_PolicyFilter):
    resource = django_filters.CharFilter(
        field_name="rows__resource", distinct=True, label="Resource"
    )
    resource__in = CharInFilter(
        field_name="rows__resource", distinct=True, label="Resource, one of"
    )


class LimitRangeFilter(_ResourceFilter):
    """Limit ranges by place, name, enforcement, the resources they name, revision and time."""

    class Meta(_ListOptions):
        model = LimitRange
        fields: ClassVar = _RECORDED


class MetadataPolicyFilter(_PolicyFilter):
    """Metadata policies by place, name, enforcement, whether they reject, revision and time."""

    reject = TrueFalseFilter(field_name="rules__reject", distinct=True, label="Reject")

    class Meta(_ListOptions):
        model = MetadataPolicy
        fields: ClassVar = _RECORDED


class ResourceQuotaFilter(_ResourceFilter):
    """Quotas by place, name, enforcement, the resources they limit, revision and time."""

    class Meta(_ListOptions):
        model = ResourceQuota
        fields: ClassVar = _RECORDED


class CredentialFilter(_OfClusterFilter):
    """Credentials by cluster, label, time, and whether they are revoked."""

    label__contains = ContainsFilter(field_name="label")
    revoked = TrueFalseFilter(
        field_name="revoked", lookup_expr="isnull", exclude=True, label="Revoked"
    )

    class Meta(_ListOptions):
        model = WebhookCredential
        fields: ClassVar = {"label": _TEXT, "created": _TIME}


class PolicyRevisionFilter(django_filters.FilterSet):
    """Revisions by object, user, number and time; ``name`` is the whole name."""

    name__exact = django_filters.CharFilter(field_name="name")
    name__contains = ContainsFilter(field_name="name")
    action__in = ChoiceInFilter(field_name="action", choices=PolicyRevision.Action.choices)
    since = IsoUtcFilter(field_name="created", lookup_expr="gte", label="Since", validators=MOMENTS)
    until = IsoUtcFilter(field_name="created", lookup_expr="lt", label="Until", validators=MOMENTS)

    class Meta(_ListOptions):
        model = PolicyRevision
        fields: ClassVar = {
            **dict.fromkeys(("cluster", "namespace", "kind", "name", "uid", "user"), _TEXT),
            "action": ["exact"],
            "number": _NUMBER,
            "cluster_revision": _NUMBER,
            "created": _TIME,
        }


class RoleChangeFilter(django_filters.FilterSet):
    """Role changes by subject, role, scope, author and time."""

    action__in = ChoiceInFilter(field_name="action", choices=RoleChange.Action.choices)

    class Meta(_ListOptions):
        model = RoleChange
        fields: ClassVar = {
            **dict.fromkeys(("subject", "role", "cluster", "namespace", "actor"), _TEXT),
            "action": ["exact"],
            "created": _TIME,
        }


class RoleBindingFilter(django_filters.FilterSet):
    """Role bindings by subject, role, scope, author and time."""

    user = django_filters.CharFilter(field_name="user__username", label="User")
    group = django_filters.CharFilter(field_name="group__name", label="Group")
    role__in = ChoiceInFilter(field_name="role", choices=RoleBinding.Role.choices)

    class Meta(_ListOptions):
        model = RoleBinding
        fields: ClassVar = {
            **dict.fromkeys(("cluster", "namespace", "created_by"), _TEXT),
            "role": ["exact"],
            "created": _TIME,
        }


class ApiTokenFilter(_NameFilter):
    """Tokens by name, access, scope and times."""

    class Meta(_ListOptions):
        model = ApiToken
        fields: ClassVar = {
            **dict.fromkeys(("cluster", "namespace"), _TEXT),
            "access": ["exact"],
            "created": _TIME,
            "last_used": _TIME,
        }


class ServiceAccountFilter(django_filters.FilterSet):
    """Service accounts by name, author and time."""

    name = django_filters.CharFilter(field_name="user__username", lookup_expr="icontains")
    name__exact = django_filters.CharFilter(field_name="user__username", label="Exact name")
    name__in = CharInFilter(field_name="user__username", label="Name, one of")

    class Meta(_ListOptions):
        model = ServiceAccount
        fields: ClassVar = {"created_by": _TEXT, "created": _TIME}


class ChargeFilter(_OfClusterFilter):
    """Charges by place, quota, object, state and time."""

    quota = django_filters.CharFilter(field_name="quota__name", label="Quota")
    quota__in = CharInFilter(field_name="quota__name", label="Quota, one of")
    state__in = ChoiceInFilter(field_name="state", choices=Charge.State.choices)

    class Meta(_ListOptions):
        model = Charge
        fields: ClassVar = {
            **dict.fromkeys(("namespace", "resource", "object_uid", "object_name"), _TEXT),
            "state": ["exact"],
            "created": _TIME,
            "updated": _TIME,
        }


class LedgerEntryFilter(django_filters.FilterSet):
    """Entries of a quota's journal by action, cause, object and time."""

    action__in = ChoiceInFilter(field_name="action", choices=LedgerEntry.Action.choices)
    cause__in = ChoiceInFilter(field_name="cause", choices=LedgerEntry.Cause.choices)

    class Meta(_ListOptions):
        model = LedgerEntry
        fields: ClassVar = {
            **dict.fromkeys(("resource", "object_uid", "object_name", "reference"), _TEXT),
            "action": ["exact"],
            "cause": ["exact"],
            "created": _TIME,
        }
