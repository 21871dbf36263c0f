"""The canary of compiled policies: an admission policy that refuses one dry-run pod, by its word.

The API server evaluates admission policies before it calls validating webhooks: whatever answer
comes from a webhook, the admission policy let the canary through.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any, Final

from engine.compiled import LABEL, VALIDATING
from policies.validators import CANARY_NAMESPACE
from sync.errors import APIError, BusyError, ForbiddenError
from sync.installation.canary import CanaryResult, canary_pod

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sync.client import Client

NAME: Final = "gatehouse.canary"
ANNOTATION: Final = "policy.gatehouse.dev/compiled-canary"
_ANNOTATIONS: Final = "object.metadata.?annotations.orValue({})"
_SAID: Final = "was refused by the API server, as it must be"
_WEBHOOKS: Final = ("admission webhook", "failed calling webhook", "failed to call webhook")
_BOTH: Final = {"matchPolicy": "Equivalent", "objectSelector": {}}


def canary_manifests() -> tuple[Mapping[str, Any], ...]:
    """The admission policy and its binding; they refuse nothing but dry runs of the canary."""
    rule = {
        "apiGroups": [""],
        "apiVersions": ["*"],
        "operations": ["CREATE"],
        "resources": ["pods"],
        "scope": "Namespaced",
    }
    key = f'"{ANNOTATION}"'
    validation = {
        "expression": f"!request.dryRun || !({key} in {_ANNOTATIONS})",
        "messageExpression": f'"canary " + {_ANNOTATIONS}[{key}] + " {_SAID}"',
        "message": f"the canary {_SAID}",
        "reason": "Forbidden",
    }
    policy = {
        "failurePolicy": "Fail",
        "matchConstraints": {**_BOTH, "namespaceSelector": {}, "resourceRules": [rule]},
        "validations": [validation],
    }
    selector = {"matchLabels": {"kubernetes.io/metadata.name": CANARY_NAMESPACE}}
    binding = {
        "policyName": NAME,
        "matchResources": {**_BOTH, "namespaceSelector": selector},
        "validationActions": ["Deny"],
    }
    labels = {"app.kubernetes.io/managed-by": "gatehouse", LABEL: "canary"}
    return tuple(
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": kind,
            "metadata": {"name": NAME, "labels": labels, "annotations": {}},
            "spec": spec,
        }
        for kind, spec in zip(VALIDATING, (policy, binding), strict=True)
    )


def call_compiled_canary(client: Client) -> tuple[CanaryResult, str]:
    """Ask the API server about the canary; returns the outcome and the answer."""
    word = secrets.token_hex(8)
    pod = canary_pod(secrets.token_hex(8))
    pod["metadata"]["annotations"][ANNOTATION] = word
    try:
        client.create(pod, dry_run=True)
    except APIError as error:
        if isinstance(error, ForbiddenError) and f"canary {word} {_SAID}" in error.message:
            return CanaryResult.REFUSED, error.message
        by_webhook = any(words in error.message for words in _WEBHOOKS)
        if isinstance(error, ForbiddenError | BusyError) and by_webhook:
            return CanaryResult.LET_THROUGH, error.message
        return CanaryResult.UNKNOWN, error.message
    return CanaryResult.LET_THROUGH, "the canary was let through"
