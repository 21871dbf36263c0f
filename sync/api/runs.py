"""Views of runs: requested with 202, read, held deletions confirmed; results by object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.decorators import action
from rest_framework.reverse import reverse

from policies import roles
from policies.api.access import OF_CLUSTERS
from sync.api import filters, serializers
from sync.api.cluster_part import SyncView
from sync.models import SyncResult, SyncRun
from sync.passes import lifecycle, resolution

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from rest_framework.request import Request
    from rest_framework.response import Response
    from rest_framework.serializers import BaseSerializer


class SyncRunView(SyncView):
    """Runs of the clusters that the caller sees as a whole."""

    queryset = SyncRun.objects.select_related("cluster")
    serializer_class = serializers.SyncRunSerializer
    names: ClassVar = {**OF_CLUSTERS, "whole": True}
    filterset_class = filters.SyncRunFilter
    ordering_fields = ("created", "started", "finished")
    lookup_field = "uid"
    lookup_value_regex = "[0-9a-fA-F-]{36}"

    def get_serializer_class(self) -> type[BaseSerializer[Any]]:
        """A run of a list has no advice, which costs queries."""
        is_detail = self.action in ("retrieve", "confirm")
        return serializers.SyncRunDetailSerializer if is_detail else super().get_serializer_class()

    @extend_schema(
        request=serializers.SyncRunRequestSerializer,
        responses={202: serializers.SyncRunSerializer},
    )
    def create(self, request: Request) -> Response:
        """Request a run, or join a waiting one of the same mode; a worker carries it out."""
        sent = self.body(request, serializers.SyncRunRequestSerializer)
        cluster = self.cluster_of(sent)
        self.require(SyncRun, "add", cluster=cluster.name)
        with self.write():
            run = lifecycle.request_by_person(cluster, mode=sent["mode"], user=self.author())
            shown = dict(self.get_serializer(run).data)
        if self.is_dry_run:
            return self.answer({**shown, "uid": None}, status.HTTP_202_ACCEPTED)
        address = reverse("api-run-detail", kwargs={"uid": run.uid})
        return self.answer(shown, status.HTTP_202_ACCEPTED, Location=address)

    @extend_schema(
        request=serializers.ConfirmationSerializer,
        responses=serializers.SyncRunDetailSerializer,
    )
    @action(detail=True, methods=["post"])
    def confirm(self, request: Request, **_names: Any) -> Response:
        """Let a held run carry out the deletions that the caller has read."""
        run = self.get_object()
        self.require(SyncRun, "change", cluster=run.cluster.name)
        sent = self.body(request, serializers.ConfirmationSerializer)
        with self.write():
            return self.show(resolution.confirm_held(run, self.author(), read=sent["held"]))


class SyncResultView(SyncView):
    """The results of one run, object by object."""

    queryset = SyncResult.objects.all()
    serializer_class = serializers.SyncResultSerializer
    names: ClassVar = {"cluster": "run__cluster__name", "whole": True}
    filterset_class = filters.SyncResultFilter
    ordering_fields = ("kind", "namespace", "name", "outcome")

    def list(self, request: Request, *_args: Any, **_names: Any) -> Response:
        """A page of results, in the order in which they were recorded."""
        runs = roles.visible(SyncRun.objects.all(), request.user, **SyncRunView.names)
        if not runs.filter(uid=self.kwargs["uid"]).exists():
            raise Http404
        return super().list(request)

    def get_queryset(self) -> QuerySet[SyncResult]:
        """The results of the run that the address names."""
        results: QuerySet[SyncResult] = super().get_queryset()
        # The schema is made without an address.
        return results.filter(run__uid=self.kwargs["uid"]) if self.kwargs else results
