"""REST serializers of runs, results, ownerships, alerts, usage comparisons and their bodies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from rest_framework import serializers

from policies.openapi import TEXT_MAP, Answered, DescribedField
from sync.models import ClusterAlert, SyncOwnership, SyncResult, SyncRun, UsageComparison
from sync.passes.advice import advice
from sync.passes.lifecycle import REQUESTABLE
from sync.runs.pause import LONGEST_REASON

if TYPE_CHECKING:
    Schema = dict[str, Any]

COUNTS: Schema = {"type": "object", "additionalProperties": {"type": "integer"}}
_DRY_RUN_HELP = "null only where ?dryRun=All shows what would be new"


class DifferenceSerializer(Answered, serializers.Serializer[Any]):
    """One field that differs: its value on each side, and who wrote it in the cluster."""

    optional_in_answers = ("base", "ours", "theirs", "manager", "time")

    field = serializers.CharField(help_text="its path; empty for the whole object")
    base = serializers.JSONField(allow_null=True, help_text="on which both sides last agreed")
    ours = serializers.JSONField(allow_null=True)
    theirs = serializers.JSONField(allow_null=True)
    manager = serializers.CharField(allow_null=True, help_text="the field manager in the cluster")
    time = serializers.CharField(allow_null=True)


class ReasonSerializer(serializers.Serializer[Any]):
    """The reason for an action."""

    reason = serializers.CharField(
        required=False, allow_blank=True, max_length=LONGEST_REASON, help_text="for the record"
    )


class PauseSerializer(serializers.Serializer[Any]):
    """Why a cluster's sync is paused."""

    reason = serializers.CharField(
        max_length=LONGEST_REASON, help_text="shown to people who find the sync paused"
    )


class SyncRunSerializer(Answered, serializers.ModelSerializer[SyncRun]):
    """One pass over a cluster: its trigger, progress and counts."""

    uid = serializers.UUIDField(read_only=True, allow_null=True, help_text=_DRY_RUN_HELP)
    cluster = serializers.CharField(source="cluster.name", read_only=True)
    counts = DescribedField(COUNTS, read_only=True, help_text="objects by what was done to them")

    class Meta:
        model = SyncRun
        fields: ClassVar = [
            "uid", "cluster", "mode", "trigger", "user", "state", "attempt", "confirmed_by",
            "stage", "total", "done", "counts", "error", "created", "started", "heartbeat",
            "finished",
        ]  # fmt: skip
        read_only_fields = fields


class SyncRunDetailSerializer(SyncRunSerializer):
    """One pass over a cluster, with advice and the number of deletions that it is held for."""

    advice = serializers.SerializerMethodField(help_text="what to do; empty if nothing")
    held = serializers.SerializerMethodField(help_text="deletions that a person must confirm")

    class Meta(SyncRunSerializer.Meta):
        fields: ClassVar = [*SyncRunSerializer.Meta.fields, "advice", "held"]
        read_only_fields = fields

    def get_advice(self, run: SyncRun) -> str:
        """What to do, or what happens by itself."""
        return advice(run)

    def get_held(self, run: SyncRun) -> int:
        """How many deletions wait for a person."""
        return run.results.filter(outcome=SyncResult.Outcome.HELD).count()


class SyncRunRequestSerializer(serializers.Serializer[Any]):
    """A requested run."""

    cluster = serializers.CharField(max_length=63)
    mode = serializers.ChoiceField(
        [mode.value for mode in REQUESTABLE],
        help_text="preview writes nothing, import nothing to the cluster, sync on both sides",
    )


class ConfirmationSerializer(serializers.Serializer[Any]):
    """The consent to the deletions that a run is held for."""

    held = serializers.IntegerField(
        min_value=1,
        max_value=2**31 - 1,
        help_text="the number of deletions that were read; another one is refused",
    )


class SyncResultSerializer(Answered, serializers.ModelSerializer[SyncResult]):
    """A run's action on one object."""

    differences = DescribedField(DifferenceSerializer(many=True), read_only=True)

    class Meta:
        model = SyncResult
        fields: ClassVar = [
            "id", "kind", "namespace", "name", "action", "outcome", "message", "differences",
            "created", "finished",
        ]  # fmt: skip


class SyncOwnershipSerializer(Answered, serializers.ModelSerializer[SyncOwnership]):
    """A part of a cluster that the portal may write: an object, a namespace, or all of it."""

    required_in_bodies = ("cluster",)

    id = serializers.IntegerField(read_only=True, allow_null=True, help_text=_DRY_RUN_HELP)
    cluster = serializers.CharField(source="cluster.name", max_length=63)
    namespace = serializers.CharField(
        required=False, allow_blank=True, max_length=63, help_text="empty: the whole cluster"
    )
    kind = serializers.CharField(
        required=False, allow_blank=True, max_length=63, help_text="of an object, with its name"
    )
    name = serializers.CharField(required=False, allow_blank=True, max_length=253)

    class Meta:
        model = SyncOwnership
        fields: ClassVar = ["id", "cluster", "namespace", "kind", "name", "user", "created"]
        read_only_fields: ClassVar = ["user", "created"]
        # The service checks it under lock, and answers with one error whatever the database is.
        validators: ClassVar[list[Any]] = []


class ClusterAlertSerializer(Answered, serializers.ModelSerializer[ClusterAlert]):
    """A condition of a cluster that needs a person; open until ``resolved``."""

    cluster = serializers.CharField(source="cluster.name", read_only=True)

    class Meta:
        model = ClusterAlert
        fields: ClassVar = [
            "id", "cluster", "kind", "subject", "severity", "message", "since", "seen", "resolved",
        ]  # fmt: skip


class UsageObjectSerializer(Answered, serializers.Serializer[Any]):
    """An object that only one side counts."""

    optional_in_answers = ("kind", "name", "uid", "amount", "side", "why")

    kind = serializers.CharField()
    name = serializers.CharField()
    uid = serializers.CharField()
    amount = serializers.CharField()
    side = serializers.CharField(help_text="ledger or cluster: the only one that counts it")
    why = serializers.CharField(allow_blank=True)


class UsageDifferenceSerializer(Answered, serializers.Serializer[Any]):
    """One resource of a quota whose amounts differ, with the objects behind the difference."""

    optional_in_answers = ("cluster", "ledger", "objects", "more", "unexplained")

    resource = serializers.CharField()
    cluster = serializers.CharField()
    ledger = serializers.CharField()
    objects = UsageObjectSerializer(many=True)
    more = serializers.IntegerField(help_text="further objects")
    unexplained = serializers.CharField(allow_blank=True)


class UsageComparisonSerializer(Answered, serializers.ModelSerializer[UsageComparison]):
    """A quota's usage in the cluster and in the ledger, as last compared."""

    cluster = serializers.CharField(source="cluster.name", read_only=True)
    observed = DescribedField(TEXT_MAP, read_only=True)
    ledger = DescribedField(TEXT_MAP, read_only=True)
    differences = DescribedField(UsageDifferenceSerializer(many=True), read_only=True)

    class Meta:
        model = UsageComparison
        fields: ClassVar = [
            "id", "cluster", "namespace", "quota", "observed", "ledger", "differences", "compared",
            "since",
        ]  # fmt: skip
