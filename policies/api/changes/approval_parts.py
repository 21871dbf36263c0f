"""REST serializers of approvals: needs, approvals and checks of a change; rules, their history."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from policies.change_sets.approvals.checks import CheckKind, CheckState
from policies.change_sets.approvals.terms import APPROVING_ROLES, MOST_APPROVERS
from policies.models import ApprovalRule, ApprovalRuleChange
from policies.models.changes.approval_rule import KINDS, MOST_NAMED
from policies.models.changes.change_set import LONGEST_NOTE
from policies.openapi import OBJECT, Answered, DescribedField, or_null


class ChangeNeedSerializer(Answered, serializers.Serializer[Any]):
    """What a rule asks of a change."""

    rule = serializers.CharField()
    words = serializers.CharField(help_text="such as: needs 1 approver of team: 3 pods would …")
    role = serializers.CharField(help_text="empty: it is about checks")
    approvers = serializers.IntegerField()
    missing = serializers.IntegerField(help_text="so many approvers; 0: it is met")
    by = serializers.ListField(
        child=serializers.CharField(), help_text="the users whose approvals count"
    )


class ChangeApprovalSerializer(Answered, serializers.Serializer[Any]):
    """An approval of the present content."""

    user = serializers.CharField()
    counts = serializers.BooleanField(help_text="for any of the needs")


class ChangeCheckSerializer(Answered, serializers.Serializer[Any]):
    """A check of the present content."""

    kind = serializers.ChoiceField([each.value for each in CheckKind])
    state = serializers.ChoiceField([each.value for each in CheckState])
    number = serializers.IntegerField(allow_null=True, help_text="what was counted")
    words = serializers.CharField()
    updated = serializers.DateTimeField()


class ChangeReviewSerializer(Answered, serializers.Serializer[Any]):
    """What a change needs by the rules of now, and what it has."""

    needs = ChangeNeedSerializer(many=True)
    approvals = ChangeApprovalSerializer(many=True)
    checks = ChangeCheckSerializer(many=True)


class ApproveSerializer(Answered, serializers.Serializer[Any]):
    """An approval: of which content, and what is said of it."""

    note = serializers.CharField(required=False, allow_blank=True, max_length=LONGEST_NOTE)
    content_hash = serializers.RegexField(
        "^[0-9a-f]{64}$", help_text="the content that was looked at"
    )


class RequestChangesSerializer(Answered, serializers.Serializer[Any]):
    """What has to be other."""

    note = serializers.CharField(max_length=LONGEST_NOTE)


class PublishNowSerializer(Answered, serializers.Serializer[Any]):
    """Why it cannot wait."""

    reason = serializers.CharField(max_length=LONGEST_NOTE, help_text="kept on record")
    content_hash = serializers.RegexField(
        "^[0-9a-f]{64}$", required=False, help_text="refuses another content than this"
    )


def _names(help_text: str, *, longest: int = 63) -> Any:
    name = serializers.CharField(max_length=longest)
    return serializers.ListField(
        child=name, required=False, max_length=MOST_NAMED, help_text=help_text
    )


def _threshold(help_text: str) -> Any:
    return serializers.IntegerField(
        required=False, allow_null=True, min_value=0, max_value=1_000_000, help_text=help_text
    )


class ApprovalRuleSerializer(Answered, serializers.ModelSerializer[ApprovalRule]):
    """When a change needs approvals, of whom, and whether its checks must be green."""

    id = serializers.IntegerField(
        read_only=True, allow_null=True, help_text="null only where ?dryRun=All shows a new one"
    )
    name = serializers.CharField(max_length=100)
    kinds = serializers.ListField(
        child=serializers.ChoiceField(KINDS), required=False, help_text="empty: all"
    )
    clusters = _names("empty: all")
    namespaces = _names("names, or prefixes and *; empty: all")
    flips_over = _threshold("more verdicts of the replay than this would differ")
    restarts_over = _threshold("more running pods than this could not restart")
    namespaces_over = _threshold("it changes more namespaces than this")
    red_tests_over = _threshold("more kept tests than this would be red")
    approvers = serializers.IntegerField(required=False, min_value=0, max_value=MOST_APPROVERS)
    role = serializers.ChoiceField(APPROVING_ROLES, required=False)

    class Meta:
        model = ApprovalRule
        fields = [
            *("id", "name", "position", "enabled", "kinds", "clusters", "namespaces"),
            *("deletes", "enforces", "below_used", "flips_over", "restarts_over"),
            *("namespaces_over", "red_tests_over", "approvers", "role"),
            *("for_each_namespace", "checks_green"),
            *("revision", "created", "updated"),
        ]
        read_only_fields = ["position", "revision", "created", "updated"]


class MoveRuleSerializer(Answered, serializers.Serializer[Any]):
    """How far a rule is moved in the order."""

    places = serializers.IntegerField(
        min_value=-1000, max_value=1000, help_text="so many down; negative: up"
    )


class ApprovalRuleChangeSerializer(Answered, serializers.ModelSerializer[ApprovalRuleChange]):
    """One write of a rule."""

    before = DescribedField(or_null(OBJECT))
    after = DescribedField(or_null(OBJECT))

    class Meta:
        model = ApprovalRuleChange
        fields = ["id", "created", "action", "rule", "before", "after", "actor"]
