"""``POST /api/v1/simulations/``: one object decided under the policies of a namespace, unstored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import APIException
from rest_framework.permissions import IsAuthenticated
from rest_framework.views import APIView

from engine.decision_json import render_decision, render_ref, render_step, render_violation
from engine.errors import DecodeError
from engine.request import Operation
from engine.wire import dumps
from policies import simulation, snapshot
from policies.api.access import ByRole
from policies.api.bodies import (
    BodyError,
    answer_to,
    check_body,
    check_manifests,
)
from policies.api.components import ManifestField
from policies.manifests.documents import Document
from policies.openapi import (
    OBJECT,
    OUTCOMES,
    TEXT_MAP,
    Answered,
    DescribedField,
    FoundViolationSerializer,
    PatchOperationSerializer,
    PolicyNameSerializer,
)
from policies.rest import KnownParameters, ManifestParser

if TYPE_CHECKING:
    from rest_framework.request import Request
    from rest_framework.response import Response

    from policies.simulation import Simulation
    from policies.simulation.costs import Cost
    from policies.simulation.explain import ExplainedField


LARGEST: Final = 256 * 1024
"""Bytes of a body: an object is decided once for each policy of its namespace."""


class LargeSimulationError(APIException):
    """The body is larger than ``LARGEST``: 413."""

    status_code = 413
    default_detail = f"a simulation takes at most {LARGEST // 1024} KiB"


class SimulationRequestSerializer(Answered, serializers.Serializer[Any]):
    """An object to decide about, and policies that are not saved."""

    cluster = serializers.CharField(max_length=63)
    namespace = serializers.CharField(max_length=63)
    object = serializers.DictField(help_text="any Kubernetes object; with oldObject, its new state")
    oldObject = serializers.DictField(  # noqa: N815 - Kubernetes' own name
        required=False, help_text="the state before an update"
    )
    policies = serializers.ListField(
        child=ManifestField(),
        required=False,
        help_text="manifests that stand in for stored policies of the same kind and name",
    )


class CauseSerializer(serializers.Serializer[Any]):
    """The origin of a change."""

    source = serializers.ChoiceField(  # type: ignore[assignment]  # a field, not the property
        ["policy", "portal", "api-server"]
    )
    policy = PolicyNameSerializer(allow_null=True)
    rule = serializers.IntegerField(allow_null=True)


class ObjectChangeSerializer(serializers.Serializer[Any]):
    """One field that the decision sets."""

    field = serializers.CharField()
    before = serializers.JSONField(allow_null=True)
    after = serializers.JSONField()
    cause = CauseSerializer()


class CostLineSerializer(serializers.Serializer[Any]):
    """One resource of a quota, and the object's share of it."""

    resource = serializers.CharField()
    hard = serializers.CharField()
    used = serializers.CharField(
        allow_null=True, help_text="null while it is unknown: existing objects are not counted yet"
    )
    requested = serializers.CharField()
    room = serializers.IntegerField(
        allow_null=True,
        help_text="how many such objects fit; null if it requests nothing, or used is unknown",
    )


class CostSerializer(serializers.Serializer[Any]):
    """What the object costs in one quota."""

    quota = serializers.CharField()
    matched = serializers.BooleanField()
    charged = serializers.BooleanField()
    lines = CostLineSerializer(many=True)


class SimulatedStepSerializer(Answered, serializers.Serializer[Any]):
    """One policy (and rule) that was evaluated, and the result; empty members are left out."""

    optional_in_answers = ("policy", "rule", "detail", "numbers")

    step = serializers.CharField()
    outcome = serializers.ChoiceField(OUTCOMES)
    policy = PolicyNameSerializer()
    rule = serializers.IntegerField(help_text="its place in the policy")
    detail = serializers.CharField()
    numbers = DescribedField(TEXT_MAP)


class SimulatedDecisionSerializer(serializers.Serializer[Any]):
    """The decision itself, as `manage.py admit -o json` prints it."""

    allowed = serializers.BooleanField()
    code = serializers.IntegerField(help_text="HTTP status in the answer to the API server")
    reason = serializers.CharField(allow_blank=True)
    message = serializers.CharField(allow_blank=True)
    violations = FoundViolationSerializer(many=True)
    patch = PatchOperationSerializer(many=True)
    object = DescribedField(OBJECT, allow_null=True, help_text="as it would be stored")
    warnings = serializers.ListField(child=serializers.CharField())
    used = DescribedField(
        {"type": "object", "additionalProperties": TEXT_MAP},
        help_text="what each quota would use afterwards",
    )
    trace = SimulatedStepSerializer(many=True)


class SimulationSerializer(serializers.Serializer[Any]):
    """The verdict and its reasons."""

    admitted = serializers.BooleanField(
        help_text="by the portal, and by the API server's plugins where these enforce"
    )
    sentence = serializers.CharField()
    decision = SimulatedDecisionSerializer()
    refused_natively = FoundViolationSerializer(
        many=True, help_text="violations for which the API server's own plugins would refuse"
    )
    changes = ObjectChangeSerializer(many=True)
    costs = CostSerializer(many=True)


class SimulationView(KnownParameters, ByRole, APIView):
    """Decide about an object; nothing is stored or charged."""

    permission_classes = [IsAuthenticated]
    stores_nothing = True
    """A token to read may send it."""
    parser_classes = [ManifestParser]

    def problems_of(self, method: str, *, is_detail: bool) -> dict[int, str]:
        """A large body is refused; nothing is stored, so nothing conflicts."""
        problems = super().problems_of(method, is_detail=is_detail)
        too_large = {413: LargeSimulationError.default_detail}
        return {code: text for code, text in (problems | too_large).items() if code != 409}  # noqa: PLR2004  the status

    def handle_exception(self, exc: Exception) -> Response:
        """Answer unknown clusters and namespaces by their field."""
        return answer_to(exc) or super().handle_exception(exc)

    @extend_schema(request=SimulationRequestSerializer, responses=SimulationSerializer)
    def post(self, request: Request) -> HttpResponse:
        """Return the simulation."""
        if int(request.META.get("CONTENT_LENGTH") or 0) > LARGEST:
            raise LargeSimulationError
        serializer = SimulationRequestSerializer(data=request.data)
        check_body(request.data, kind="", beside=serializer.fields)
        serializer.is_valid(raise_exception=True)
        check_manifests(serializer.validated_data.get("policies", ()), path="policies")
        rendered = _render(self._simulate(serializer.validated_data))
        # Numbers of the object keep their text, which the framework's renderer does not know.
        return HttpResponse(dumps(rendered), content_type="application/json")

    def _simulate(self, sent: dict[str, Any]) -> Simulation:
        cluster = self.cluster_of(sent)
        name = self.namespace_in(cluster, sent["namespace"])
        old = sent.get("oldObject")
        operation = Operation.CREATE if old is None else Operation.UPDATE
        try:
            judged = simulation.request_for(
                sent["object"], namespace=name, operation=operation, old=old
            )
            stored = snapshot.load(cluster.name, name)
            policies = simulation.with_unsaved(stored, sent.get("policies", ()))
        except DecodeError as error:
            place = error.field if error.field.startswith("policies") else f"object.{error.field}"
            raise BodyError([Document("body", None).problem(place, error.detail)]) from error
        return simulation.run(judged, policies)


def _render(found: Simulation) -> dict[str, Any]:
    trace = [render_step(step) for step in found.decision.trace]
    return {
        "admitted": found.is_admitted,
        "sentence": found.sentence,
        "decision": {**render_decision(found.decision), "trace": trace},
        "refused_natively": [render_violation(each) for each in found.refused_natively],
        "changes": [_change(each) for each in found.changes],
        "costs": [_cost(each) for each in found.costs],
    }


def _change(change: ExplainedField) -> dict[str, Any]:
    cause = {
        "source": change.cause.source.value,
        "policy": render_ref(change.cause.policy),
        "rule": change.cause.rule,
    }
    return {"field": change.field, "before": change.before, "after": change.after, "cause": cause}


def _cost(cost: Cost) -> dict[str, Any]:
    lines = [
        {
            "resource": line.resource,
            "hard": str(line.hard),
            "used": None if line.used is None else str(line.used),
            "requested": str(line.requested),
            "room": line.room,
        }
        for line in cost.lines
    ]
    return {
        "quota": cost.quota.name,
        "matched": cost.is_matched,
        "charged": cost.is_charged,
        "lines": lines,
    }
