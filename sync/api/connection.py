"""View of a cluster's connection: shown, connected by a kubeconfig, tested, cut, paused, resumed.

Answers have no credential, and the portal cannot open one either: only workers can.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from django.core.exceptions import ValidationError
from django.http import Http404
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers, status
from rest_framework.response import Response

from engine.policy import Authority
from policies import preconditions, roles
from policies.api import deletion
from policies.models import Cluster
from policies.openapi import TEXTS, Answered, DescribedField
from policies.problem_details import CONTENT_TYPE, ProblemSerializer
from sync.api.cluster_part import ClusterPartView
from sync.api.serializers import PauseSerializer, ReasonSerializer, SyncRunSerializer
from sync.models import ClusterConnection
from sync.passes import lifecycle
from sync.passes.advice import connection_hint
from sync.runs import pause

if TYPE_CHECKING:
    from collections.abc import Sequence

    from drf_spectacular.utils import OpenApiParameter
    from rest_framework.request import Request

    from sync.models import SyncRun

PAUSING: Final = "sync.change_clusterconnection"
CONNECTING: Final = "sync.add_clusterconnection"
DISCONNECTING: Final = "sync.delete_clusterconnection"
_UNSEALED: Final = {
    (503, CONTENT_TYPE): OpenApiResponse(
        ProblemSerializer, description="the portal has no key to seal the credential with"
    )
}


class ProblemFoundSerializer(Answered, serializers.Serializer[Any]):
    """Something that a test found, beside missing permissions."""

    code = serializers.CharField()
    message = serializers.CharField()


class FindingsSerializer(Answered, serializers.Serializer[Any]):
    """The findings of a test."""

    state = serializers.ChoiceField(ClusterConnection.State.choices)
    message = serializers.CharField(allow_blank=True)
    is_usable = serializers.BooleanField(help_text="whether a sync can begin")
    server_version = serializers.CharField(allow_blank=True, help_text="empty: it did not answer")
    cluster_uid = serializers.CharField(allow_blank=True)
    clock_skew = serializers.FloatField(
        allow_null=True, help_text="seconds ahead of the portal's clock"
    )
    missing_permissions = DescribedField(TEXTS)
    problems = ProblemFoundSerializer(many=True)


class ConnectionSerializer(Answered, serializers.ModelSerializer[ClusterConnection]):
    """The connection of a cluster, without its credential."""

    cluster = serializers.CharField(source="cluster.name", read_only=True)
    missing_permissions = DescribedField(TEXTS, read_only=True)
    hint = serializers.SerializerMethodField(help_text="the state's meaning and cure")

    class Meta:
        model = ClusterConnection
        fields: ClassVar = [
            "cluster", "server", "tls_server_name", "method", "credential_expires", "state",
            "message", "hint", "since", "tested", "server_version", "cluster_uid", "clock_skew",
            "missing_permissions", "is_paused", "paused_since", "paused_by", "pause_reason",
            "created", "updated",
        ]  # fmt: skip
        read_only_fields = fields

    def get_hint(self, connection: ClusterConnection) -> str:
        """What the state means, and what to do."""
        return connection_hint(connection)


class ConnectedSerializer(ConnectionSerializer):
    """A connection that was just stored, what its test found, and the first import."""

    problems = ProblemFoundSerializer(many=True)
    run = SyncRunSerializer(
        allow_null=True, help_text="the import that follows; null if the connection is not usable"
    )

    class Meta(ConnectionSerializer.Meta):
        fields: ClassVar = [*ConnectionSerializer.Meta.fields, "problems", "run"]
        read_only_fields = fields


class KubeconfigSerializer(serializers.Serializer[Any]):
    """A kubeconfig to test."""

    kubeconfig = serializers.CharField(
        trim_whitespace=False,
        write_only=True,
        help_text="YAML or JSON with server, authority, and token or client certificate; whatever "
        "would run a program, read a file, skip a check or go through a proxy is refused",
    )
    context = serializers.CharField(  # type: ignore[assignment]  # a field, not the property
        required=False, allow_blank=True, max_length=253, help_text="empty: the file's current one"
    )
    is_other_cluster = serializers.BooleanField(
        required=False, help_text="the name leads to another cluster from now on"
    )


class ConnectSerializer(KubeconfigSerializer, ReasonSerializer):
    """A kubeconfig to connect a cluster with."""

    is_anyway = serializers.BooleanField(
        required=False, help_text="replace a connection that works even if this one does not"
    )
    authority = serializers.ChoiceField(
        [each.value for each in Authority],
        required=False,
        help_text="who enforces ranges and quotas of a new cluster: native by default",
    )


class ConnectionView(ClusterPartView):
    """The connection of the cluster that the address names."""

    serializer_class = ConnectionSerializer

    def parameters_of(self, action: str) -> Sequence[OpenApiParameter]:
        """Add ``If-Match`` of changes, and the reason of a deletion."""
        parameters = super().parameters_of(action)
        if action in ("update", "destroy"):
            parameters = (*parameters, preconditions.IF_MATCH)
        return (*parameters, deletion.REASON) if action == "destroy" else parameters

    def etag_of(self, instance: ClusterConnection) -> str:
        """Which credential it is: findings and pauses do not change it."""
        return f'"{instance.pk}-{instance.generation}"'

    def retrieve(self, request: Request, *_args: Any, **_names: Any) -> Response:
        """The connection, and the findings of its last test."""
        del request
        return self.show(self._find_connection(self.find_cluster()))

    @extend_schema(
        request=ConnectSerializer,
        responses={200: ConnectedSerializer, 201: ConnectedSerializer, **_UNSEALED},
    )
    def update(self, request: Request, **_names: Any) -> Response:
        """Connect the cluster, or replace its connection; an unknown cluster is made.

        The connection is tested first, with ``dryRun`` as well. If it can be used, the first
        import is requested.
        """
        from sync.api import joins  # noqa: PLC0415 - cryptography is large, and connecting is rare

        existing = self._require_connecting()
        if existing is not None:
            preconditions.require_match(request, self.etag_of(existing))
        sent = self.body(request, ConnectSerializer)
        joined = joins.join(
            self.kwargs["cluster"],
            sent,
            user=self.author(),
            generation=existing.generation if existing else 0,
            is_dry_run=self.is_dry_run,
        )
        run = self._first_import(joined.connection.cluster) if joined.findings.is_usable else None
        code = status.HTTP_200_OK if existing else status.HTTP_201_CREATED
        shown = self.show(joined.connection, code)
        shown.data["problems"] = joins.problems_found(joined.findings)
        shown.data["run"] = SyncRunSerializer(run).data if run else None
        return shown

    @extend_schema(request=KubeconfigSerializer, responses=FindingsSerializer)
    def test(self, request: Request, **_names: Any) -> Response:
        """Test a kubeconfig for this cluster; nothing is stored.

        Only workers can open a stored credential: to test it, request a run in mode ``preview``.
        """
        from sync.api import joins  # noqa: PLC0415 - cryptography is large, and connecting is rare

        self._require_connecting()
        sent = self.body(request, KubeconfigSerializer)
        return self.answer(joins.try_out(self.kwargs["cluster"], sent))

    @extend_schema(request=None, responses={204: None, 200: ConnectionSerializer})
    def destroy(self, request: Request, **_names: Any) -> Response:
        """Delete the connection with its credential; nothing changes in the cluster."""
        from sync.connect import connections  # noqa: PLC0415 - cryptography is large

        cluster = self.find_cluster(DISCONNECTING)
        connection = self._find_connection(cluster)
        preconditions.require_match(request, self.etag_of(connection))
        if self.is_dry_run:
            return self.show(connection)
        reason = request.query_params.get("reason", "")
        connections.disconnect(cluster, self.author(), reason=reason)
        return Response(status=status.HTTP_204_NO_CONTENT)

    @extend_schema(request=PauseSerializer, responses=ConnectionSerializer)
    def pause(self, request: Request, **_names: Any) -> Response:
        """Send no requests to the cluster until it is resumed."""
        cluster = self.find_cluster(PAUSING)
        sent = self.body(request, PauseSerializer)
        with self.write():
            return self.show(pause.pause(cluster, user=self.author(), reason=sent["reason"]))

    @extend_schema(request=ReasonSerializer, responses=ConnectionSerializer)
    def resume(self, request: Request, **_names: Any) -> Response:
        """End the pause: waiting and due runs start within seconds."""
        cluster = self.find_cluster(PAUSING)
        reason = self.body(request, ReasonSerializer).get("reason", "")
        with self.write():
            return self.show(pause.resume(cluster, user=self.author(), reason=reason))

    def _find_connection(self, cluster: Cluster) -> ClusterConnection:
        connection = ClusterConnection.objects.filter(cluster=cluster).first()
        if connection is None:
            raise Http404
        return connection

    def _require_connecting(self) -> ClusterConnection | None:
        """The connection to replace; a hidden cluster is refused like one that may not be added."""
        name = self.kwargs["cluster"]
        if Cluster.objects.filter(name=name).exists():
            cluster = self.find_cluster(CONNECTING)
            return ClusterConnection.objects.filter(cluster=cluster).first()
        permissions = (CONNECTING, "policies.add_cluster")
        if not all(roles.may(self.request.user, each, cluster=name) for each in permissions):
            raise Http404
        return None

    def _first_import(self, cluster: Cluster) -> SyncRun | None:
        """Request the import; none in a dry run, and while a pause goes on."""
        if self.is_dry_run:
            return None
        try:
            return lifecycle.request_by_person(cluster, mode="import", user=self.author())
        except ValidationError:
            return None
