"""``/api/v1/tests/`` of a namespace: kept, changed, deleted, and run under its policies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.response import Response

from engine.errors import DecodeError
from policies import filters, services, simulation
from policies.api.bodies import BodyError, check_body, check_manifests
from policies.api.kept_tests import serializers
from policies.api.views import NamespacedView
from policies.manifests.documents import Document
from policies.models import KeptTest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from drf_spectacular.utils import OpenApiParameter
    from rest_framework.request import Request

    from policies.services import Saved


class KeptTestView(NamespacedView):
    """Kept tests."""

    model = KeptTest
    serializer_class = serializers.PolicyTestSerializer
    manifest_kind = "PolicyTest"
    queryset = KeptTest.objects.select_related("namespace__cluster")
    filterset_class = filters.KeptTestFilter

    @property
    def stores_nothing(self) -> bool:
        """A token to read may run the tests."""
        return self.action == "run"

    def parameters_of(self, action: str) -> Sequence[OpenApiParameter]:
        """A run has none."""
        return () if action == "run" else super().parameters_of(action)

    def save(self, instance: Any, data: dict[str, Any], *, expected: int | None) -> Saved:
        """Read the manifest and save the test."""
        manifest = {"kind": KeptTest.kind, "metadata": data["metadata"], "spec": data["spec"]}
        test = services.take_over(instance, manifest)
        return services.save_kept_test(test=test, expected_revision=expected, **self.written(data))

    def remove(self, instance: Any, reason: str) -> None:
        """Delete the test."""
        services.delete_kept_test(test=instance, user=self.author(), reason=reason)

    @extend_schema(
        request=serializers.KeptTestRunRequestSerializer,
        responses=serializers.KeptTestRunSerializer,
    )
    @action(detail=False, methods=["post"])
    def run(self, request: Request) -> Response:
        """Judge the tests of a namespace; nothing is stored or charged."""
        serializer = serializers.KeptTestRunRequestSerializer(data=request.data)
        check_body(request.data, kind="", beside=serializer.fields)
        serializer.is_valid(raise_exception=True)
        sent: dict[str, Any] = serializer.validated_data
        check_manifests(sent.get("manifests", ()), path="manifests")
        cluster = self.cluster_of(sent)
        namespace = self.namespace_in(cluster, sent["namespace"])
        try:
            results = simulation.run_tests(
                cluster.name, namespace, unsaved=sent.get("manifests", ())
            )
        except DecodeError as error:
            place = error.field.replace("policies", "manifests", 1)
            raise BodyError([Document("body", None).problem(place, error.detail)]) from error
        return Response(serializers.render_run(cluster.name, namespace, results))
