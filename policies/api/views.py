"""REST viewsets, one a model: queryset, sent body, make, save, remove, revoke, restore, pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django_filters.rest_framework import DjangoFilterBackend
from drf_spectacular.utils import extend_schema
from knox.auth import TokenAuthentication
from rest_framework import mixins, status
from rest_framework.authentication import SessionAuthentication
from rest_framework.decorators import action
from rest_framework.pagination import LimitOffsetPagination
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from policies import filters, roles, services
from policies.api import deletion, serializers
from policies.api.access import OF_CLUSTERS, OF_NAMESPACES, ByRole, WritesByRole
from policies.api.bodies import ManifestParser, answer_to, check_body
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
from policies.rest import CREATE_NAMESPACE, DRY_RUN, KnownParameters, is_on

if TYPE_CHECKING:
    from collections.abc import Sequence

    from drf_spectacular.utils import OpenApiParameter
    from rest_framework.request import Request

    from policies.services import Saved

    ViewSet = GenericViewSet[Any]
else:
    ViewSet = GenericViewSet


class ApiPagination(LimitOffsetPagination):
    """Fifty objects by default."""

    default_limit = 50
    max_limit = 500


class _PolicyView(
    KnownParameters, ByRole, mixins.ListModelMixin, mixins.RetrieveModelMixin, ViewSet
):
    """Authentication, permissions, parsing and errors of all views."""

    authentication_classes = [TokenAuthentication, SessionAuthentication]
    permission_classes = [WritesByRole]
    parser_classes = [ManifestParser]
    filter_backends = [DjangoFilterBackend]
    pagination_class = ApiPagination

    manifest_kind = ""
    """The kind of the bodies; empty if they are no manifests."""

    def handle_exception(self, exc: Exception) -> Response:
        """Answer errors of services: by path, and with 409 for used names and stale revisions."""
        return answer_to(exc) or super().handle_exception(exc)

    def parameters_of(self, action: str) -> Sequence[OpenApiParameter]:
        """Every write accepts ``dryRun``."""
        return () if action in ("", "list", "retrieve") else (DRY_RUN,)

    def author(self) -> str:
        """The name of the user."""
        return str(self.request.user.get_username())

    def sent(self, request: Request) -> dict[str, Any]:
        """The checked body, as the serializer reads it."""
        serializer: Any = self.get_serializer(data=request.data)
        check_body(request.data, kind=self.manifest_kind, beside=serializer.fields)
        serializer.is_valid(raise_exception=True)
        sent_body: dict[str, Any] = serializer.validated_data
        return sent_body

    def show(self, instance: Any, code: int = status.HTTP_200_OK, **context: Any) -> Response:
        """Answer with one object."""
        serializer_context = {**self.get_serializer_context(), **context}
        shown_json = dict(self.get_serializer_class()(instance, context=serializer_context).data)
        if self.is_dry_run and self.action in ("create", "restore"):
            shown_json["id"] = None  # rolled back: the next object gets the number
        return Response(shown_json, code)


class _RecordedView(_PolicyView):
    """Create, replace and delete objects whose every write is on record."""

    def create(self, request: Request) -> Response:
        """Create an object; a used name is refused."""
        sent_body = self.sent(request)
        with self.write():
            saved = self.save(self.make(sent_body), sent_body, expected=0)
            return self.show(saved.instance, status.HTTP_201_CREATED, lints=saved.lints)

    def update(self, request: Request, **_names: Any) -> Response:
        """Replace an object; ``revision`` is the one that the change is based on."""
        sent_body = self.sent(request)
        with self.write():
            saved = self.save(self.get_object(), sent_body, expected=sent_body.get("revision"))
            # Read again: the prefetched rows are those from before the write.
            return self.show(self.get_object(), lints=saved.lints)

    @extend_schema(request=None, responses={204: None, **deletion.RESPONSES})
    def destroy(self, request: Request, **_names: Any) -> Response:
        """Delete an object; ``?reason=`` is recorded, ``?dryRun=All`` shows what would go."""
        instance = self.get_object()
        if self.is_dry_run:
            return Response(deletion.preview(instance, self.show(instance).data))
        # Inside the lock: the consent is about a revision, which must not change any more.
        with services.policy_write(instance.owner):
            fresh = self.get_object()
            deletion.require_consent(request, fresh)
            self.remove(fresh, request.query_params.get("reason", ""))
        return Response(status=status.HTTP_204_NO_CONTENT)

    def parameters_of(self, action: str) -> Sequence[OpenApiParameter]:
        """Add the parameters of a deletion."""
        write_parameters = super().parameters_of(action)
        of_deletion = deletion.parameters(is_cluster=isinstance(self, ClusterView))
        return (*write_parameters, *of_deletion) if action == "destroy" else write_parameters

    def make(self, sent_body: dict[str, Any]) -> Any:
        """An empty object in its place."""
        raise NotImplementedError

    def save(self, instance: Any, sent_body: dict[str, Any], *, expected: int | None) -> Saved:
        """Set the fields from the body, and save through a service."""
        raise NotImplementedError

    def remove(self, instance: Any, reason: str) -> None:
        """Delete through a service."""
        raise NotImplementedError

    def written(self, sent_body: dict[str, Any]) -> dict[str, str]:
        """User and reason of a write."""
        return {"user": self.author(), "reason": sent_body.get("reason", "")}


class _NamespacedView(_RecordedView):
    serializer_class = serializers.PolicySerializer
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


class LimitRangeView(_NamespacedView):
    """Limit ranges."""

    model = LimitRange
    manifest_kind = "LimitRange"
    queryset = LimitRange.objects.select_related("namespace__cluster").prefetch_related("rows")
    filterset_class = filters.LimitRangeFilter


class MetadataPolicyView(_NamespacedView):
    """Metadata policies."""

    model = MetadataPolicy
    manifest_kind = "MetadataPolicy"
    queryset = MetadataPolicy.objects.select_related("namespace__cluster").prefetch_related("rules")
    filterset_class = filters.MetadataPolicyFilter


class ResourceQuotaView(_NamespacedView):
    """Resource quotas; ``status`` is the ledger's and never written here."""

    model = ResourceQuota
    manifest_kind = "ResourceQuota"
    queryset = ResourceQuota.objects.select_related("namespace__cluster").prefetch_related(
        "rows", "scope_rows"
    )
    filterset_class = filters.ResourceQuotaFilter


class ClusterView(_RecordedView):
    """Clusters, by name."""

    queryset = Cluster.objects.all()
    serializer_class = serializers.ClusterSerializer
    names: ClassVar = {"cluster": "name"}
    filterset_class = filters.ClusterFilter
    lookup_field = "name"

    def make(self, sent_body: dict[str, Any]) -> Any:
        """Start an empty cluster."""
        self.require(Cluster, "add", cluster=sent_body["name"])
        return Cluster(name=sent_body["name"])

    def save(self, instance: Any, sent_body: dict[str, Any], *, expected: int | None) -> Saved:
        """Save the cluster."""
        for name in ("name", "description", "external_id"):
            setattr(instance, name, sent_body.get(name, ""))
        instance.unconfirmed_limit = sent_body["unconfirmed_limit"]
        return services.save_cluster(
            cluster=instance, expected_revision=expected, **self.written(sent_body)
        )

    def remove(self, instance: Any, reason: str) -> None:
        """Delete the cluster and all it has."""
        services.delete_cluster(cluster=instance, user=self.author(), reason=reason)


class NamespaceView(_RecordedView):
    """Namespaces."""

    queryset = Namespace.objects.select_related("cluster")
    serializer_class = serializers.NamespaceSerializer
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


class PriorityClassView(_RecordedView):
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


class LimitedResourcesView(_PolicyView):
    """Limited resources, by cluster name."""

    queryset = Cluster.objects.all()
    serializer_class = serializers.LimitedResourcesSerializer
    names: ClassVar = {"cluster": "name"}
    written_model = LimitedResource
    filterset_class = filters.ClusterFilter
    lookup_field = "name"

    def update(self, request: Request, **_names: Any) -> Response:
        """Set the whole list of one cluster."""
        sent_body = self.sent(request)
        cluster = self.get_object()
        with self.write():
            services.set_limited_resources(
                cluster=cluster,
                entries=sent_body["limitedResources"],
                user=self.author(),
                reason=sent_body.get("reason", ""),
            )
            return self.show(cluster)


class CredentialView(_PolicyView):
    """Webhook credentials: issue and revoke."""

    queryset = WebhookCredential.objects.select_related("cluster")
    serializer_class = serializers.CredentialSerializer
    names: ClassVar = {**OF_CLUSTERS, "whole": True}
    filterset_class = filters.CredentialFilter

    def create(self, request: Request) -> Response:
        """Issue a credential; only this response has its secret."""
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


class RevisionView(_PolicyView):
    """The history of policies."""

    queryset = PolicyRevision.objects.all()
    serializer_class = serializers.RevisionSerializer
    names: ClassVar = {"cluster": "cluster", "namespace": "namespace"}
    filterset_class = filters.PolicyRevisionFilter

    @extend_schema(request=None)
    @action(detail=True, methods=["post"])
    def restore(self, _request: Request, **_names: Any) -> Response:
        """Restore the object of this revision; the response is the new revision."""
        revision = self.get_object()
        self.require_restoring(revision)
        with self.write():
            saved = services.restore_revision(revision=revision, user=self.author())
            return self.show(saved.revision or revision)


class ChargeView(_PolicyView):
    """The quota ledger, to read."""

    queryset = Charge.objects.select_related("cluster", "quota")
    serializer_class = serializers.ChargeSerializer
    names: ClassVar = {**OF_CLUSTERS, "namespace": "namespace"}
    filterset_class = filters.ChargeFilter
