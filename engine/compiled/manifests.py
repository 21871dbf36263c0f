"""``CompiledPolicy``: admission policies and their bindings as manifests, and what is missing.

One policy gives at most one ValidatingAdmissionPolicy and one MutatingAdmissionPolicy, each with a
binding of the same name, which selects the policy's namespace.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from engine.compiled.cel import joined
from engine.policy import Enforcement, InAPIServer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.policy import LimitRange, MetadataPolicy

LIMIT_RANGE: Final = "limitrange"
METADATA_POLICY: Final = "metadatapolicy"
LABEL: Final = "policy.gatehouse.dev/compiled"
"""The label that only compiled objects have; its value is the kind of the policy."""
VALIDATING: Final = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
MUTATING: Final = ("MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding")
KINDS: Final = (*VALIDATING, *MUTATING)
"""The kinds of compiled objects, in the order in which they are created."""
_API_VERSION: Final = "admissionregistration.k8s.io/v1"
_NAME_LABEL: Final = "kubernetes.io/metadata.name"
_LONGEST_NAME: Final = 253
LONGEST_EXPRESSION: Final = 100_000
"""Characters of one expression; the API server reads no longer ones."""
MOST_EXPRESSIONS: Final = 1_000_000
"""Characters of all expressions of one object; an API server stores objects of 1.5 MiB."""
_WORDS: Final = {"LimitRange": LIMIT_RANGE, "MetadataPolicy": METADATA_POLICY}
NOT_BEING_DELETED: Final = {
    "name": "not-being-deleted",
    "expression": 'request.operation != "UPDATE" || !has(oldObject.metadata.deletionTimestamp)',
}
"""Objects that are being deleted must stay writable, so that finalizers can be removed."""


class NotExpressible(NamedTuple):
    """A part of a policy that the API server does not enforce, and why."""

    field: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledPolicy:
    """The manifests of one policy, none where nothing of it can be compiled."""

    manifests: tuple[Mapping[str, Any], ...] = ()
    not_expressible: tuple[NotExpressible, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledValidation:
    """What a ValidatingAdmissionPolicy of one policy judges.

    ``texts`` is an expression for the list of reasons to refuse; ``fallback`` is the message where
    they are too long.
    """

    rules: Sequence[Mapping[str, Any]]
    excluded: Sequence[Mapping[str, Any]] = ()
    variables: Mapping[str, str]
    texts: str
    fallback: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledMutation:
    """What a MutatingAdmissionPolicy of one policy sets.

    ``is_needed`` is an expression for whether anything changes, which may be too long to be used;
    ``patch`` one for the list of operations, which may read ``variables``.
    """

    rules: Sequence[Mapping[str, Any]]
    excluded: Sequence[Mapping[str, Any]]
    is_needed: str
    variables: Mapping[str, str]
    patch: str


def object_name(policy: LimitRange | MetadataPolicy) -> str:
    """Name the compiled objects of a policy."""
    return f"gatehouse.{policy.namespace}.{_WORDS[type(policy).__name__]}.{policy.name}"


def name_missing(policy: LimitRange | MetadataPolicy) -> NotExpressible | None:
    """Why there is no name for the compiled objects of a policy; mostly None."""
    if len(object_name(policy)) <= _LONGEST_NAME:
        return None
    return NotExpressible("metadata.name", "with it, the compiled objects' name is too long")


def actions(enforcement: Enforcement, in_api_server: InAPIServer) -> list[str]:
    """The actions of a binding: the API server never does more than the portal would."""
    if in_api_server is InAPIServer.AUDIT or enforcement is Enforcement.AUDIT:
        return ["Audit"]
    return ["Deny"] if enforcement is Enforcement.ENFORCE else ["Warn", "Audit"]


def validating(
    policy: LimitRange | MetadataPolicy, in_api_server: InAPIServer, validation: CompiledValidation
) -> tuple[Mapping[str, Any], ...]:
    """Make the ValidatingAdmissionPolicy of a policy, and its binding."""
    variables = {**validation.variables, "refusals": validation.texts}
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": constraints(validation.rules, validation.excluded),
        "matchConditions": [dict(NOT_BEING_DELETED)],
        "variables": _variables(variables),
        "validations": [
            {
                "expression": "variables.refusals.size() == 0",
                "messageExpression": joined("variables.refusals"),
                "message": validation.fallback,
                "reason": "Forbidden",
            }
        ],
    }
    binding = {"validationActions": actions(policy.enforcement, in_api_server)}
    return _pair(policy, VALIDATING, spec, binding)


def mutating(policy: MetadataPolicy, mutation: CompiledMutation) -> tuple[Mapping[str, Any], ...]:
    """Make the MutatingAdmissionPolicy of a policy, and its binding."""
    conditions = [dict(NOT_BEING_DELETED)]
    if len(mutation.is_needed) <= LONGEST_EXPRESSION:
        # Even an empty patch takes the server a schema, which it lacks for kinds that are a few
        # seconds old: it refuses their objects. This limits that to those that would be changed.
        conditions.append({"name": "changes-metadata", "expression": mutation.is_needed})
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": constraints(mutation.rules, mutation.excluded),
        "matchConditions": conditions,
        "variables": _variables(mutation.variables),
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": mutation.patch}}],
        # As the portal's own webhook: what other webhooks write may match a rule, too.
        "reinvocationPolicy": "IfNeeded",
    }
    return _pair(policy, MUTATING, spec, {})


def constraints(
    rules: Sequence[Mapping[str, Any]], excluded: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Make ``matchConstraints``, with all fields that the API server would default."""
    found: dict[str, Any] = {
        "matchPolicy": "Equivalent",
        "namespaceSelector": {},
        "objectSelector": {},
        "resourceRules": [_rule(rule) for rule in rules],
    }
    if excluded:
        found["excludeResourceRules"] = [_rule(rule) for rule in excluded]
    return found


def _rule(rule: Mapping[str, Any]) -> dict[str, Any]:
    return {"apiVersions": ["*"], "scope": "Namespaced", **rule}


def _variables(expressions: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "expression": expression} for name, expression in expressions.items()]


def _pair(
    policy: LimitRange | MetadataPolicy,
    kinds: tuple[str, str],
    spec: Mapping[str, Any],
    binding: Mapping[str, Any],
) -> tuple[Mapping[str, Any], ...]:
    name = object_name(policy)
    metadata = {
        "name": name,
        "labels": {
            "app.kubernetes.io/managed-by": "gatehouse",
            LABEL: _WORDS[type(policy).__name__],
        },
        "annotations": {
            "policy.gatehouse.dev/compiled-from": (
                f"{type(policy).__name__} {policy.namespace}/{policy.name}"
            )
        },
    }
    namespaces = {"matchLabels": {_NAME_LABEL: policy.namespace}}
    binding_spec = {
        "policyName": name,
        "matchResources": {
            "matchPolicy": "Equivalent",
            "namespaceSelector": namespaces,
            "objectSelector": {},
        },
        **binding,
    }
    return tuple(
        {"apiVersion": _API_VERSION, "kind": kind, "metadata": metadata, "spec": each}
        for kind, each in zip(kinds, (spec, binding_spec), strict=True)
    )
