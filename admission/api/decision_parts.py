"""Serializers that describe parts of a decision on record: violations, steps, patch, charges.

They are for the OpenAPI document alone: answers repeat the record's JSON as it was written.
"""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from engine.decision import Reason
from policies.openapi import OUTCOMES, TEXT_MAP, Answered, DescribedField


class PolicyRefSerializer(Answered, serializers.Serializer[Any]):
    """A policy at one revision."""

    kind = serializers.CharField()
    namespace = serializers.CharField()
    name = serializers.CharField()
    revision = serializers.IntegerField()


class ViolationSerializer(Answered, serializers.Serializer[Any]):
    """One rule that the object breaks."""

    reason = serializers.ChoiceField([reason.value for reason in Reason])
    field = serializers.CharField(help_text="a path into the judged object")
    message = serializers.CharField()
    policy = PolicyRefSerializer(allow_null=True)
    rule = serializers.IntegerField(allow_null=True, help_text="its place in the policy")
    numbers = DescribedField(TEXT_MAP, help_text="the amounts that were compared, by role")


class StepSerializer(Answered, serializers.Serializer[Any]):
    """One policy (and rule) that was evaluated, and the result."""

    name = serializers.CharField()
    outcome = serializers.ChoiceField(OUTCOMES)
    policy = PolicyRefSerializer(allow_null=True)
    rule = serializers.IntegerField(allow_null=True, help_text="its place in the policy")
    detail = serializers.CharField()
    numbers = DescribedField(TEXT_MAP)


class DecisionChargeSerializer(Answered, serializers.Serializer[Any]):
    """What the object costs one quota: the growth of its use, and the whole use of the object."""

    quota = PolicyRefSerializer()
    delta = DescribedField(TEXT_MAP)
    amounts = DescribedField(TEXT_MAP)
