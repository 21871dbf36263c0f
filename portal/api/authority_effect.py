"""View of what another authority would do: recorded decisions judged again, nothing switched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers

from engine.policy import Authority
from policies.openapi import Answered, DescribedField
from policies.rest import BadParameterError
from portal.authority_switch import DAYS, LONGEST, other_authority, preview
from sync.api.cluster_part import ClusterPartView
from sync.api.serializers import COUNTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rest_framework.request import Request
    from rest_framework.response import Response

_DAYS: Final = OpenApiParameter(
    "days",
    {"type": "integer", "minimum": 1, "maximum": LONGEST, "default": DAYS},
    description="number of days to look back",
)
_AUTHORITIES: Final = [each.value for each in Authority]


class ChangedDecisionSerializer(Answered, serializers.Serializer[Any]):
    """A recorded decision that would have come out otherwise."""

    id = serializers.CharField()
    namespace = serializers.CharField(allow_blank=True)
    target = serializers.CharField()
    message = serializers.CharField(allow_blank=True, help_text="its first violation")


class AuthorityEffectSerializer(Answered, serializers.Serializer[Any]):
    """The effect of the other authority on the newest decisions of some days."""

    authority = serializers.ChoiceField(_AUTHORITIES, help_text="the one that is not in force")
    days = serializers.IntegerField()
    looked_at = serializers.IntegerField(help_text="decisions judged again")
    let_through = serializers.IntegerField(help_text="denials that would only be warnings")
    refused = serializers.IntegerField(help_text="warnings that would be denials")
    by_namespace = DescribedField(COUNTS, help_text="decisions that would change")
    examples = ChangedDecisionSerializer(many=True)
    not_native = DescribedField(
        {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}}},
        help_text="policies by namespace for which the portal goes on enforcing",
    )
    differing = DescribedField(
        {"type": "array", "items": {"type": "string"}},
        help_text="ranges and quotas that differ between both sides",
    )


class AuthorityEffectView(ClusterPartView):
    """The effect of a switch of the authority of the cluster that the address names."""

    serializer_class = AuthorityEffectSerializer

    def parameters_of(self, action: str) -> Sequence[OpenApiParameter]:
        """Add the number of days to look back."""
        return (*super().parameters_of(action), _DAYS)

    @extend_schema(responses=AuthorityEffectSerializer)
    def retrieve(self, request: Request, *_args: Any, **_names: Any) -> Response:
        """Judge the newest decisions again as if the other authority were in force."""
        cluster = self.find_cluster()
        days = _days(request)
        impact = preview(cluster, other_authority(cluster), days=days)
        shown = {
            "authority": impact.to.value,
            "days": days,
            "looked_at": impact.looked_at,
            "let_through": impact.let_through,
            "refused": impact.refused,
            "by_namespace": dict(impact.by_namespace),
            "examples": ChangedDecisionSerializer(impact.examples, many=True).data,
            "not_native": dict(impact.missing),
            "differing": list(impact.differing),
        }
        return self.answer(shown)


def _days(request: Request) -> int:
    """The number of days to look back; raises ``BadParameterError``."""
    given = request.query_params.get(_DAYS.name, str(DAYS))
    days = int(given) if given.isascii() and given.isdecimal() and len(given) < LONGEST else 0
    if not 1 <= days <= LONGEST:
        message = f"must be a whole number from 1 to {LONGEST}"
        raise BadParameterError(_DAYS.name, message, code="invalid")
    return days
