"""Tables MetadataPolicy and MetadataPolicyRule: rules to rows and back; ratchet, strict."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar, Self

from django.db import models

from engine.metadata_policy import API_VERSION, decode_metadata_policy, validate_metadata_policy
from policies.models.compilable import CompilablePolicy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.errors import FieldError
    from policies.validators import Place

SELECTORS = {"labelSelector": "label_selector", "annotationSelector": "annotation_selector"}
UPDATES = {"updatedLabels": "updated_labels", "updatedAnnotations": "updated_annotations"}
_RULE_COLUMNS = {**SELECTORS, **UPDATES, "reject": "reject"}
_RULES_PATH = re.compile(r"spec\.rules\[(\d+)\](?:\.\w+(?:\.(\w+))?)?.*", re.DOTALL)


class MetadataPolicy(CompilablePolicy):
    """Rules over labels and annotations of one namespace."""

    kind = "MetadataPolicy"
    row_sets = ("rules",)

    ratchet = models.BooleanField(
        default=False, help_text="refuse an update only if the old object did not already match"
    )
    strict = models.BooleanField(
        default=False, help_text="evaluate reject rules again in the validating phase"
    )

    class Meta(CompilablePolicy.Meta):
        verbose_name_plural = "metadata policies"

    def to_manifest(self) -> dict[str, Any]:
        """The object in today's names; ``reject`` is always written."""
        rules = sorted(self.rows_of("rules"), key=lambda rule: rule.position)
        policy_spec: dict[str, Any] = {"rules": [rule.to_manifest() for rule in rules]}
        policy_flags = {"ratchet": self.ratchet, "strict": self.strict}
        policy_spec.update({name: True for name, value in policy_flags.items() if value})
        return {
            "apiVersion": API_VERSION,
            "kind": self.kind,
            "metadata": self.metadata(),
            "spec": policy_spec,
        }

    def read_manifest(self, policy_manifest: Mapping[str, Any]) -> Self:
        """Set everything, rules as a draft; raises ``DecodeError`` or ``ValidationError``."""
        decode_metadata_policy(policy_manifest)
        self.read_metadata(policy_manifest)
        spec = policy_manifest.get("spec") or {}
        self.ratchet, self.strict = bool(spec.get("ratchet")), bool(spec.get("strict"))
        rules = enumerate(spec.get("rules") or [])
        self.draft_rows("rules", [MetadataPolicyRule.of_manifest(i, rule) for i, rule in rules])
        return self

    def rule_errors(self, policy_manifest: Mapping[str, Any], /) -> Sequence[FieldError]:
        """Validate by the engine."""
        return validate_metadata_policy(decode_metadata_policy(policy_manifest))

    def locate(self, rules_error: FieldError) -> Place:
        """Find the rule of an error: ``spec.rules[i].policyAction.updatedLabels`` is rule i."""
        rules_match = _RULES_PATH.fullmatch(rules_error.field)
        if not rules_match:
            return super().locate(rules_error)
        return ("rules", int(rules_match[1]), _RULE_COLUMNS.get(rules_match[2] or "", ""))


class MetadataPolicyRule(models.Model):
    """One rule: an absent selector (NULL) always holds, an empty one matches everything."""

    policy = models.ForeignKey(MetadataPolicy, models.CASCADE, related_name="rules")
    position = models.PositiveIntegerField(default=0)
    label_selector = models.JSONField(null=True, blank=True)
    annotation_selector = models.JSONField(null=True, blank=True)
    reject = models.BooleanField(default=False)
    updated_labels = models.JSONField(default=dict, blank=True)
    updated_annotations = models.JSONField(default=dict, blank=True)

    class Meta:
        ordering: ClassVar = ["policy_id", "position"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["policy", "position"], name="metadatapolicyrule_position_once"
            )
        ]

    def __str__(self) -> str:
        return f"rule {self.position}"

    def to_manifest(self) -> dict[str, Any]:
        """The rule as the manifest writes it."""
        given_selectors = {name: getattr(self, column) for name, column in SELECTORS.items()}
        rule_action: dict[str, Any] = {"reject": self.reject}
        for name, column in UPDATES.items():
            if value := getattr(self, column):
                rule_action[name] = value
        predicate = {name: value for name, value in given_selectors.items() if value is not None}
        return {"policyPredicate": predicate, "policyAction": rule_action}

    @classmethod
    def of_manifest(cls, position: int, rule: Mapping[str, Any]) -> MetadataPolicyRule:
        """Read one rule; ``PolicyAction`` is the field's name in old manifests."""
        rule_predicate = rule.get("policyPredicate") or {}
        rule_action = rule.get("policyAction") or rule.get("PolicyAction") or {}
        return cls(
            position=position,
            reject=bool(rule_action.get("reject")),
            **{column: rule_predicate.get(name) for name, column in SELECTORS.items()},
            **{column: rule_action.get(name) or {} for name, column in UPDATES.items()},
        )
