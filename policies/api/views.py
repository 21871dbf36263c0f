"""REST viewsets, one a model: queryset, serializer, make, save, remove, revoke, restore."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.decorators import action
from rest_framework.response import Response

from policies import filters, history, preconditions, roles, services, snapshot
from policies.api import deletion, effective, export, serializers
from policies.api.access import OF_CLUSTERS, OF_NAMESPACES
from policies.api.bodies import check_body
from policies.api.past.reads import PastNamespaces, PastOfClusters, PastReads
from policies.api.recorded_view import PolicyView, RecordedView
from policies.history import at_parameter
from policies.models import (
    Charge,
    Cluster,
    LimitedResource,
    LimitRange,
    MetadataPolicy,
    Namespace,
    PolicyRevision,
    PriorityClass,
    ResourceQuota,
    WebhookCredential,
)
from policies.rest import CREATE_NAMESPACE, is_on
from policies.validators import LABEL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.http import HttpResponse
    from drf_spectacular.utils import OpenApiParameter
    from rest_framework.request import Request

    from policies.services import Saved


class NamespacedView(RecordedView):
    """Objects of a namespace; those of policies."""

    names = OF_NAMESPACES
    model: ClassVar[Any]

    def make(self, sent_body: dict[str, Any]) -> Any:
        """An empty policy in its namespace, which is created only with ``create_namespace``."""
        name = sent_body["metadata"].get("namespace") or "default"
        cluster = self.cluster_of(sent_body)
        self.require(self.model, "add", cluster=cluster.name, namespace=name)
        creates = is_on(self.request, CREATE_NAMESPACE)
        if creates and not cluster.namespaces.filter(name=name).exists():
            self.require(Namespace, "add", cluster=cluster.name)
            services.ensure_namespace(cluster=cluster, name=name, user=self.author())
        seen = Namespace.objects.filter(cluster=cluster)
        seen = roles.visible(seen, self.request.user, cluster="cluster__name", namespace="name")
        known_namespaces = list(seen.values_list("name", flat=True))
        owner = services.require_namespace(cluster=cluster, name=name, known=known_namespaces)
        return self.model(namespace=owner)

    def parameters_of(self, action: str) -> Sequence[OpenApiParameter]:
        """Add ``create_namespace`` for a new policy."""
        write_parameters = super().parameters_of(action)
        return (*write_parameters, CREATE_NAMESPACE) if action == "create" else write_parameters

    def save(self, instance: Any, data: dict[str, Any], *, expected: int | None) -> Saved:
        """Read the manifest and save the policy."""
        sent_manifest = serializers.policy_manifest(self.model.kind, data)
        policy = services.take_over(instance, sent_manifest)
        return services.save_policy(policy=policy, expected_revision=expected, **self.written(data))

    def remove(self, instance: Any, reason: str) -> None:
        """Delete the policy."""
        services.delete_policy(policy=instance, user=self.author(), reason=reason)


class LimitRangeView(PastReads, NamespacedView):
    """Limit ranges."""

    model = LimitRange
    serializer_class = serializers.LimitRangeSerializer
    manifest_kind = "LimitRange"
    queryset = LimitRange.objects.select_related("namespace__cluster").prefetch_related("rows")
    filterset_class = filters.LimitRangeFilter


class MetadataPolicyView(PastReads, NamespacedView):
    """Metadata policies."""

    model = MetadataPolicy
    serializer_class = serializers.MetadataPolicySerializer
    manifest_kind = "MetadataPolicy"
    queryset = MetadataPolicy.objects.select_related("namespace__cluster").prefetch_related("rules")
    filterset_class = filters.MetadataPolicyFilter


class ResourceQuotaView(PastReads, NamespacedView):
    """Resource quotas; ``status`` is the ledger's and never written here."""

    model = ResourceQuota
    serializer_class = serializers.ResourceQuotaSerializer
    manifest_kind = "ResourceQuota"
    queryset = ResourceQuota.objects.select_related("namespace__cluster").prefetch_related(
        "rows", "scope_rows"
    )
    filterset_class = filters.ResourceQuotaFilter


class ClusterView(PastOfClusters, RecordedView):
    """Clusters, by name."""

    queryset = Cluster.objects.all()
    serializer_class = serializers.ClusterSerializer
    preview_class = serializers.ClusterDeletionSerializer
    names: ClassVar = {"cluster": "name"}
    filterset_class = filters.ClusterFilter
    lookup_field = "name"
    lookup_value_regex = LABEL

    def make(self, sent_body: dict[str, Any]) -> Any:
        """Start an empty cluster."""
        self.require(Cluster, "add", cluster=sent_body["name"])
        return Cluster(name=sent_body["name"])

    def save(self, instance: Any, sent_body: dict[str, Any], *, expected: int | None) -> Saved:
        """Save the cluster."""
        for name in ("name", "description", "external_id", "kubernetes_version"):
            setattr(instance, name, sent_body.get(name, ""))
        instance.unconfirmed_limit = sent_body["unconfirmed_limit"]
        instance.failure_policy = sent_body["failure_policy"]
        instance.excluded_namespaces = sorted(sent_body["excluded_namespaces"])
        instance.covers_kube_system = sent_body["covers_kube_system"]
        saved = services.save_cluster(
            cluster=instance, expected_revision=expected, **self.written(sent_body)
        )
        # The database counts it.
        saved.instance.refresh_from_db(fields=["policy_revision"])
        return saved

    def parameters_of(self, action: str) -> Sequence[OpenApiParameter]:
        """Add the confirmation of a deletion, and what an export contains."""
        if action == "export":
            return export.PARAMETERS
        parameters = super().parameters_of(action)
        return (*parameters, deletion.CONFIRM) if action == "destroy" else parameters

    def remove(self, instance: Any, reason: str) -> None:
        """Delete the cluster and all it has."""
        services.delete_cluster(cluster=instance, user=self.author(), reason=reason)

    @extend_schema(responses={(200, "application/yaml"): OpenApiTypes.STR})
    @action(detail=True, methods=["get"])
    def export(self, request: Request, **_names: Any) -> HttpResponse:
        """The cluster's policies as YAML, limited to what the caller may see."""
        return export.answer(request, self.get_object())


class NamespaceView(PastNamespaces, RecordedView):
    """Namespaces."""

    queryset = Namespace.objects.select_related("cluster")
    serializer_class = serializers.NamespaceSerializer
    preview_class = serializers.NamespaceDeletionSerializer
    names: ClassVar = {**OF_CLUSTERS, "namespace": "name"}
    manifest_kind = "Namespace"
    filterset_class = filters.NamespaceFilter

    def make(self, sent_body: dict[str, Any]) -> Any:
        """Start an empty namespace in its cluster."""
        cluster = self.cluster_of(sent_body)
        self.require(Namespace, "add", cluster=cluster.name)
        return Namespace(cluster=cluster)

    def save(self, instance: Any, sent_body: dict[str, Any], *, expected: int | None) -> Saved:
        """Save the namespace."""
        sent_phase = {"phase": sent_body.get("phase", Namespace.Phase.ACTIVE)}
        instance.read_manifest({"metadata": sent_body["metadata"], "status": sent_phase})
        return services.save_namespace(
            namespace=instance, expected_revision=expected, **self.written(sent_body)
        )

    def remove(self, instance: Any, reason: str) -> None:
        """Delete the namespace and its policies."""
        services.delete_namespace(namespace=instance, user=self.author(), reason=reason)

    @extend_schema(responses=effective.EffectivePoliciesSerializer)
    @action(detail=True, methods=["get"])
    def effective(self, request: Request, **_names: Any) -> Response:
        """The policies that decide in this namespace, or did at an instant, in their order."""
        namespace = self.get_object()
        cluster, name = namespace.owner.name, namespace.name
        instant = at_parameter.instant_of(request, cluster=cluster)
        if instant is None:
            return Response(effective.render(snapshot.load(cluster, name)))
        with_usage = history.horizon(cluster).knows_usage(instant)
        then = history.load_at(cluster, name, instant, with_usage=with_usage)
        return Response(effective.render(then))

    def parameters_of(self, action: str) -> Sequence[OpenApiParameter]:
        """The policies in effect can be read as of an instant."""
        return (at_parameter.AT,) if action == "effective" else super().parameters_of(action)

    def problems_of(self, method: str, *, is_detail: bool) -> dict[int, str]:
        """Add the answer to an instant that no record reaches."""
        problems = super().problems_of(method, is_detail=is_detail)
        return problems | at_parameter.BEFORE_HORIZON if self.action == "effective" else problems


class PriorityClassView(PastOfClusters, RecordedView):
    """Priority classes."""

    queryset = PriorityClass.objects.select_related("cluster")
    serializer_class = serializers.PriorityClassSerializer
    names = OF_CLUSTERS
    manifest_kind = "PriorityClass"
    filterset_class = filters.PriorityClassFilter

    def make(self, sent_body: dict[str, Any]) -> Any:
        """Start an empty class in its cluster."""
        cluster = self.cluster_of(sent_body)
        self.require(PriorityClass, "add", cluster=cluster.name)
        return PriorityClass(cluster=cluster)

    def save(self, instance: Any, sent_body: dict[str, Any], *, expected: int | None) -> Saved:
        """Save the class."""
        instance.read_manifest(sent_body)
        return services.save_priority_class(
            priority_class=instance, expected_revision=expected, **self.written(sent_body)
        )

    def remove(self, instance: Any, reason: str) -> None:
        """Delete the class."""
        services.delete_priority_class(priority_class=instance, user=self.author(), reason=reason)


class LimitedResourcesView(PolicyView):
    """Limited resources, by cluster name."""

    queryset = Cluster.objects.all()
    serializer_class = serializers.LimitedResourcesSerializer
    names: ClassVar = {"cluster": "name"}
    written_model = LimitedResource
    filterset_class = filters.ClusterFilter
    ordering_fields = ("name",)
    lookup_field = "name"
    lookup_value_regex = LABEL

    def update(self, request: Request, **_names: Any) -> Response:
        """Replace the list of one cluster."""
        sent_body = self.sent(request)
        cluster = self.get_object()
        with self.write():
            with services.policy_write(cluster):
                preconditions.require_match(request, self.etag_of(cluster))
                services.set_limited_resources(
                    cluster=cluster,
                    entries=sent_body["limitedResources"],
                    user=self.author(),
                    reason=sent_body.get("reason", ""),
                )
            return self.show(cluster)

    def etag_of(self, instance: Any) -> str:
        """A digest of the list, which has no revision of its own."""
        return preconditions.etag_of_content(self.get_serializer(instance).data)

    def parameters_of(self, action: str) -> Sequence[OpenApiParameter]:
        """Add ``If-Match`` of changes."""
        parameters = super().parameters_of(action)
        return (*parameters, preconditions.IF_MATCH) if action == "update" else parameters


class CredentialView(PolicyView):
    """Webhook credentials: issue and revoke."""

    queryset = WebhookCredential.objects.select_related("cluster")
    serializer_class = serializers.CredentialSerializer
    names: ClassVar = {**OF_CLUSTERS, "whole": True}
    filterset_class = filters.CredentialFilter
    ordering_fields = ("label", "created")

    def create(self, request: Request) -> Response:
        """Issue a credential; only this response contains its secret."""
        sent_body = self.sent(request)
        self.require(WebhookCredential, "add", cluster=sent_body["cluster"].name)
        with self.write():
            credential, secret = services.issue_webhook_credential(user=self.author(), **sent_body)
            shown_secret = None if self.is_dry_run else secret
            return self.show(credential, status.HTTP_201_CREATED, secret=shown_secret)

    @extend_schema(request=None)
    @action(detail=True, methods=["post"])
    def revoke(self, _request: Request, **_names: Any) -> Response:
        """Revoke a credential."""
        credential = self.get_object()
        self.require(WebhookCredential, "change", cluster=credential.cluster.name)
        with self.write():
            services.revoke_webhook_credential(credential=credential, user=self.author())
            return self.show(credential)


class RevisionView(PolicyView):
    """The history of policies."""

    queryset = PolicyRevision.objects.all()
    serializer_class = serializers.RevisionSerializer
    names: ClassVar = {"cluster": "cluster", "namespace": "namespace"}
    filterset_class = filters.PolicyRevisionFilter
    ordering_fields = ("name", "created", "number")

    @extend_schema(request=serializers.RestoreSerializer)
    @action(detail=True, methods=["post"])
    def restore(self, request: Request, **_names: Any) -> Response:
        """Restore the object of this revision; the response is the new revision."""
        revision = self.get_object()
        self.require_restoring(revision)
        serializer = serializers.RestoreSerializer(data=request.data)
        check_body(request.data, kind="", beside=serializer.fields)
        serializer.is_valid(raise_exception=True)
        author = {"user": self.author(), "reason": serializer.validated_data.get("reason", "")}
        with self.write():
            saved = services.restore_revision(revision=revision, **author)
            return self.show(saved.revision or revision)


class ChargeView(PolicyView):
    """The quota ledger, read-only."""

    queryset = Charge.objects.select_related("cluster", "quota")
    serializer_class = serializers.ChargeSerializer
    names: ClassVar = {**OF_CLUSTERS, "namespace": "namespace"}
    filterset_class = filters.ChargeFilter
    ordering_fields = ("object_name", "created", "updated")
