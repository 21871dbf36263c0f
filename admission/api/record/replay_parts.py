"""Serializers of replays: the body of a new one, its state, and its report, part by part."""

from __future__ import annotations

from typing import Any, Final

from rest_framework import serializers

from admission.models import Replay
from admission.models.decision_id import ID_PATTERN
from admission.replay.journal import QUOTA_STATES
from admission.replay.judge import ChangeKind
from admission.replay.quotas import WaitEnd
from admission.replay.recorded import Unreplayed
from admission.replay.report import Dimension
from admission.replay.scope import MOST_IDS
from policies.openapi import TEXT_MAP, Answered, DescribedField
from policies.rest import DocumentsField

MOST_DAYS: Final = 366
MOST_NAMESPACES: Final = 500
LONGEST_QUERY: Final = 2000
_NUMBERS: Final = {"type": "object", "additionalProperties": {"type": "integer"}}
DELETABLE: Final = ("LimitRange", "MetadataPolicy", "ResourceQuota", "ResourceQuotaConfiguration")


class ProposedDeletionSerializer(serializers.Serializer[Any]):
    """A policy that the proposal deletes."""

    kind = serializers.ChoiceField(DELETABLE)
    namespace = serializers.CharField(
        required=False, allow_blank=True, max_length=63, help_text="empty for the configuration"
    )
    name = serializers.CharField(max_length=253)


class ReplayRequestSerializer(Answered, serializers.Serializer[Any]):
    """What is proposed, and the decisions to judge by it."""

    cluster = serializers.CharField(max_length=253)
    manifests = DocumentsField(required=False)
    deletions = ProposedDeletionSerializer(many=True, required=False)
    namespace = serializers.CharField(
        required=False, max_length=63, help_text="of manifests that name none"
    )
    namespaces = serializers.ListField(
        child=serializers.CharField(max_length=63),
        required=False,
        max_length=MOST_NAMESPACES,
        help_text="of the decisions; by default those of the proposal",
    )
    days = serializers.IntegerField(
        required=False, min_value=1, max_value=MOST_DAYS, help_text="back from now, by default 7"
    )
    since = serializers.DateTimeField(required=False, help_text="in place of days")
    until = serializers.DateTimeField(required=False, help_text="by default now")
    query = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=LONGEST_QUERY,
        help_text="in the record's search language: verdict:denied -user:ada",
    )
    decisions = serializers.ListField(
        child=serializers.RegexField(f"^{ID_PATTERN}$"),
        required=False,
        max_length=MOST_IDS,
        help_text="only these, of the time",
    )
    change_set = serializers.IntegerField(
        required=False, min_value=1, max_value=2**62, help_text="the number it is made for"
    )


class ReplayExamplesSerializer(serializers.Serializer[Any]):
    """A number of decisions, and the ids of the oldest and newest; empty without any."""

    number = serializers.IntegerField()
    oldest = serializers.CharField()
    newest = serializers.CharField()


class ChangeGroupSerializer(ReplayExamplesSerializer):
    """The changed decisions of one owner, namespace, user, reason or policy."""

    key = serializers.CharField()
    days = DescribedField(_NUMBERS, help_text="how many on each day (UTC)")
    text = serializers.CharField(help_text="a message, warning or patch operation of the oldest")


class ChangeGroupingSerializer(serializers.Serializer[Any]):
    """The largest groups, and how much is left out."""

    groups = ChangeGroupSerializer(many=True)
    groups_left_out = serializers.IntegerField()
    decisions_left_out = serializers.IntegerField()


_ByDimension = type(
    "ByDimensionSerializer",
    (serializers.Serializer,),
    {
        "__doc__": "The same decisions, grouped five ways.",
        **{dimension.value: ChangeGroupingSerializer() for dimension in Dimension},
    },
)


class ChangedDecisionsSerializer(ReplayExamplesSerializer):
    """The decisions that change in one way."""

    by = _ByDimension()


class ReplayRecordSerializer(serializers.Serializer[Any]):
    """The base compared with what was recorded."""

    repeated = serializers.IntegerField()
    of_the_moment = ReplayExamplesSerializer(help_text="refused for used amounts alone")
    differing = ReplayExamplesSerializer(help_text="decided by other policies than today's")


_Changes = type(
    "ReplayChangesSerializer",
    (serializers.Serializer,),
    {
        "__doc__": "What the proposal would change, by kind.",
        **{kind.value: ChangedDecisionsSerializer() for kind in ChangeKind},
    },
)


class ReplayVerdictsSerializer(serializers.Serializer[Any]):
    """Every decision judged by base and draft, used amounts apart."""

    decisions = serializers.IntegerField(help_text="that were read")
    replayed = serializers.IntegerField(help_text="of these, that could be judged")
    judged = serializers.IntegerField(help_text="that were not like one judged before")
    record = ReplayRecordSerializer()
    not_replayed = serializers.DictField(
        child=ReplayExamplesSerializer(), help_text=f"by cause: {', '.join(Unreplayed)}"
    )
    changes = _Changes()


class HighestUsageSerializer(serializers.Serializer[Any]):
    """The highest used amounts around a moment."""

    at = serializers.DateTimeField()
    used = DescribedField(TEXT_MAP)


class FullTimeSerializer(serializers.Serializer[Any]):
    """A time in which something waited."""

    begin = serializers.DateTimeField()
    end = serializers.DateTimeField(allow_null=True)
    waited = serializers.IntegerField()


class WaitedSerializer(serializers.Serializer[Any]):
    """A request that would have waited."""

    name = serializers.CharField()
    decision = serializers.CharField(help_text="the decision that admitted it; empty if unknown")
    begin = serializers.DateTimeField()
    end = serializers.DateTimeField()
    seconds = serializers.IntegerField()
    ended = serializers.ChoiceField(list(WaitEnd))


class QuotaReplayReportSerializer(serializers.Serializer[Any]):
    """The journal of one quota against its proposed hard values."""

    hard = DescribedField(TEXT_MAP)
    hard_before = DescribedField(
        TEXT_MAP, required=False, help_text="the present ones; older replays lack them"
    )
    unknown_names = serializers.ListField(child=serializers.CharField())
    changes = serializers.IntegerField(help_text="entries of the journal that were replayed")
    peak = DescribedField(TEXT_MAP)
    points = HighestUsageSerializer(many=True)
    full_times = serializers.IntegerField(help_text="how often it was full; the first are in full")
    full = FullTimeSerializer(many=True)
    waits = DescribedField(_NUMBERS, help_text="number of waits by how they ended")
    waited_seconds = serializers.IntegerField()
    longest_waits = WaitedSerializer(many=True)


class ReplayedQuotaSerializer(serializers.Serializer[Any]):
    """A quota that the proposal changes, over time."""

    namespace = serializers.CharField()
    quota = serializers.CharField()
    state = serializers.ChoiceField(QUOTA_STATES)
    report = QuotaReplayReportSerializer(allow_null=True, help_text="of one that is replayed")


class ReplayReportSerializer(serializers.Serializer[Any]):
    """The result of a replay."""

    verdicts = ReplayVerdictsSerializer()
    quotas = ReplayedQuotaSerializer(many=True)
    quotas_left_out = serializers.IntegerField()


class ReplaySerializer(Answered, serializers.ModelSerializer[Replay]):
    """A replay: its scope, state and progress."""

    uid = serializers.UUIDField(
        read_only=True, allow_null=True, help_text="null only where ?dryRun=All shows a new one"
    )
    namespaces = DescribedField(
        {"type": "array", "items": {"type": "string"}}, read_only=True, help_text="empty: all"
    )
    decisions = DescribedField({"type": "array", "items": {"type": "string"}}, read_only=True)

    class Meta:
        """What a list shows."""

        model = Replay
        fields = [
            "uid", "cluster", "namespaces", "since", "until", "query", "decisions", "change_set",
            "user", "state", "total", "done", "problem", "created", "started", "finished",
        ]  # fmt: skip
        read_only_fields = fields


class ReplayDetailSerializer(ReplaySerializer):
    """A replay with its report, once it is done."""

    report = DescribedField(
        ReplayReportSerializer(), read_only=True, allow_null=True, help_text="null until done"
    )

    class Meta(ReplaySerializer.Meta):
        """The same, and the report."""

        fields = [*ReplaySerializer.Meta.fields, "report"]
        read_only_fields = fields
