"""``GET /api/v1/changes/ID/effect/``: the answers before and after a published change."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.generics import get_object_or_404
from rest_framework.permissions import IsAuthenticated
from rest_framework.response import Response
from rest_framework.views import APIView

from admission.effect.effect import effect_of, name_owners
from admission.effect.writes import writes_of
from admission.models import AuditEvent
from policies import roles
from policies.openapi import Answered
from policies.rest import KnownParameters
from policies.services import changes

if TYPE_CHECKING:
    from rest_framework.request import Request

    from admission.effect.effect import ChangeEffect, OwnerEffect

MOST_OWNERS: Final = 100


class AnswersSerializer(Answered, serializers.Serializer[Any]):
    """Answers of one side of a change, by outcome."""

    allowed = serializers.IntegerField()
    mutated = serializers.IntegerField()
    would_deny = serializers.IntegerField(help_text="warned, or found by a policy that audits")
    denied = serializers.IntegerField()
    mean_us = serializers.IntegerField(help_text="mean duration in µs")
    longest_us = serializers.IntegerField(help_text="longest duration in µs")


class BothSidesSerializer(Answered, serializers.Serializer[Any]):
    """A number before and after."""

    before = serializers.IntegerField()
    after = serializers.IntegerField()


class OwnerEffectSerializer(Answered, serializers.Serializer[Any]):
    """Refusals of one owner's requests."""

    cluster = serializers.CharField()
    namespace = serializers.CharField()
    kind = serializers.CharField()
    name = serializers.CharField()
    denied = BothSidesSerializer()
    would_deny = BothSidesSerializer()
    oldest = serializers.CharField(
        allow_blank=True, help_text="the first decision after the change; empty without one"
    )
    newest = serializers.CharField(allow_blank=True, help_text="the last one")


class ChangeEffectSerializer(Answered, serializers.Serializer[Any]):
    """The answers in the namespaces of a change, as long before as after each of its writes."""

    published = serializers.BooleanField(help_text="whether the change has written anything")
    since = serializers.DateTimeField(allow_null=True)
    until = serializers.DateTimeField(allow_null=True)
    seconds = serializers.IntegerField(
        help_text="the time on each side; shorter where there are many decisions"
    )
    before = AnswersSerializer(allow_null=True)
    after = AnswersSerializer(allow_null=True)
    owners = OwnerEffectSerializer(
        many=True, help_text="those that are newly denied first, at most 100"
    )
    more_owners = serializers.IntegerField(help_text="owners that are not listed")


class ChangeEffectView(KnownParameters, APIView):
    """What a change did to the answers that the caller may see; computed anew."""

    permission_classes = [IsAuthenticated]

    @extend_schema(responses=ChangeEffectSerializer)
    def get(self, request: Request, pk: int) -> Response:
        """Compare the answers before and after a change."""
        change = get_object_or_404(changes.visible_changes(request.user), pk=pk)
        decisions = roles.visible(
            AuditEvent.objects.all(), request.user, cluster="cluster", namespace="namespace"
        )
        writes = writes_of(changes.visible_items(change, request.user))
        return Response(_rendered(effect_of(writes, decisions=decisions, now=datetime.now(UTC))))


def _rendered(effect: ChangeEffect | None) -> dict[str, Any]:
    if effect is None:
        empty = dict.fromkeys(("since", "until", "before", "after"))
        return {"published": False, **empty, "seconds": 0, "owners": [], "more_owners": 0}
    listed = effect.owners[:MOST_OWNERS]
    name_owners(listed)
    return {
        "published": True,
        "since": effect.since,
        "until": effect.until,
        "seconds": int(effect.length.total_seconds()),
        "before": AnswersSerializer(effect.before).data,
        "after": AnswersSerializer(effect.after).data,
        "owners": [_owner(each) for each in listed],
        "more_owners": len(effect.owners) - len(listed),
    }


def _owner(owner: OwnerEffect) -> dict[str, Any]:
    named = ("cluster", "namespace", "kind", "name", "oldest", "newest")
    return {
        **{name: getattr(owner, name) for name in named},
        "denied": dict(zip(("before", "after"), owner.denied, strict=True)),
        "would_deny": dict(zip(("before", "after"), owner.would_deny, strict=True)),
    }
