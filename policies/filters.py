"""FilterSets (django-filter) of lists in REST and pages: by cluster, name, resource, time."""

from __future__ import annotations

from typing import ClassVar

import django_filters

from engine.policy import Enforcement
from policies.models import (
    Charge,
    Cluster,
    LimitRange,
    MetadataPolicy,
    Namespace,
    PolicyRevision,
    PriorityClass,
    ResourceQuota,
    WebhookCredential,
)
from policies.rest import MOMENTS


class ClusterFilter(django_filters.FilterSet):
    """Clusters by name."""

    name = django_filters.CharFilter(lookup_expr="icontains")

    class Meta:
        model = Cluster
        fields: ClassVar = ["name"]


class _ClusterObjectFilter(django_filters.FilterSet):
    cluster = django_filters.CharFilter(field_name="cluster__name", label="Cluster")
    name = django_filters.CharFilter(lookup_expr="icontains")


class NamespaceFilter(_ClusterObjectFilter):
    """Namespaces by cluster, name and phase."""

    class Meta:
        model = Namespace
        fields: ClassVar = ["cluster", "name", "phase"]


class PriorityClassFilter(_ClusterObjectFilter):
    """Priority classes by cluster and name."""

    class Meta:
        model = PriorityClass
        fields: ClassVar = ["cluster", "name", "global_default"]


class _PolicyFilter(django_filters.FilterSet):
    cluster = django_filters.CharFilter(field_name="namespace__cluster__name", label="Cluster")
    namespace = django_filters.CharFilter(field_name="namespace__name", label="Namespace")
    name = django_filters.CharFilter(lookup_expr="icontains")
    enforcement = django_filters.ChoiceFilter(
        choices=[(mode.value, mode.value) for mode in Enforcement]
    )


class _ResourceFilter(_PolicyFilter):
    resource = django_filters.CharFilter(
        field_name="rows__resource", distinct=True, label="Resource"
    )


class LimitRangeFilter(_ResourceFilter):
    """Limit ranges by place, name, enforcement and the resources they name."""

    class Meta:
        model = LimitRange
        fields: ClassVar = ["cluster", "namespace", "name", "enforcement", "resource"]


class MetadataPolicyFilter(_PolicyFilter):
    """Metadata policies by place, name, enforcement and whether they reject."""

    reject = django_filters.BooleanFilter(field_name="rules__reject", distinct=True, label="Reject")

    class Meta:
        model = MetadataPolicy
        fields: ClassVar = ["cluster", "namespace", "name", "enforcement", "reject"]


class ResourceQuotaFilter(_ResourceFilter):
    """Quotas by place, name, enforcement and the resources they limit."""

    class Meta:
        model = ResourceQuota
        fields: ClassVar = ["cluster", "namespace", "name", "enforcement", "resource"]


class CredentialFilter(django_filters.FilterSet):
    """Credentials by cluster, and whether they are revoked."""

    cluster = django_filters.CharFilter(field_name="cluster__name", label="Cluster")
    revoked = django_filters.BooleanFilter(
        field_name="revoked", lookup_expr="isnull", exclude=True, label="Revoked"
    )

    class Meta:
        model = WebhookCredential
        fields: ClassVar = ["cluster", "revoked"]


class PolicyRevisionFilter(django_filters.FilterSet):
    """Revisions by object, user and time."""

    since = django_filters.IsoDateTimeFilter(
        field_name="created", lookup_expr="gte", label="Since", validators=MOMENTS
    )
    until = django_filters.IsoDateTimeFilter(
        field_name="created", lookup_expr="lt", label="Until", validators=MOMENTS
    )

    class Meta:
        model = PolicyRevision
        fields: ClassVar = ["cluster", "namespace", "kind", "name", "uid", "action", "user"]


class ChargeFilter(django_filters.FilterSet):
    """Charges by place, quota, object and state."""

    cluster = django_filters.CharFilter(field_name="cluster__name", label="Cluster")
    quota = django_filters.CharFilter(field_name="quota__name", label="Quota")

    class Meta:
        model = Charge
        fields: ClassVar = ["cluster", "namespace", "quota", "resource", "object_uid", "state"]
