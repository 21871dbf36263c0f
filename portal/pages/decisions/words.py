"""Decisions in the few words of a row: the reason, what a patch changed, a service account."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from engine.decision import Reason
from policies.plurals import counted, singular

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from admission.models import AuditEvent

GENERATED_KINDS: Final = frozenset({"Pod", "ReplicaSet", "Job"})
"""Kinds that controllers name: the beginning of such a name is the owner's."""
SHOWN: Final = 2
"""Changes of a patch that a row names; it counts the others."""
LONGEST: Final = 160
"""Characters of a reason: no row is wider."""
_SERVICE_ACCOUNT: Final = "system:serviceaccount:"
_DONE: Final = {"add": "set", "replace": "changed", "remove": "removed"}
_KEY_DONE: Final = {**_DONE, "add": "added"}
_NOTE_OF_DEFAULTS: Final = "kubernetes.io/limit-ranger"
"""The annotation in which LimitRanger notes what it set: no change of its own."""
_BOUNDS: Final = {Reason.MAX_CONSTRAINT: "> max", Reason.MIN_CONSTRAINT: "< min"}


def short_user(user: str) -> str:
    """A service account by its name alone; every other user as it is."""
    return user.rpartition(":")[2] or user if user.startswith(_SERVICE_ACCOUNT) else user


def short_reason(event: AuditEvent) -> str:
    """Why it came out so, in one line: "limits: memory 4Gi > max 2Gi, +1"."""
    if event.allowed:
        found, further = event.observed, event.more_observed
    else:
        found, further = event.violations, event.more_violations
    if found:
        return _fault(found[0])[:LONGEST] + _rest(len(found) - 1 + further)
    if not event.allowed:
        return (event.message or event.reason)[:LONGEST]
    if changes := patch_words(event.patch):
        return ", ".join(changes[:SHOWN])[:LONGEST] + _rest(len(changes) - SHOWN)
    return counted(len(event.warnings), "warnings") if event.warnings else ""


def patch_words(patch: Sequence[Mapping[str, Any]]) -> list[str]:
    """What a patch changed, each once: "label team added", "limits.cpu set"."""
    changes: dict[str, None] = {}
    for operation in patch:
        path = str(operation.get("path", ""))
        steps = [step.replace("~1", "/").replace("~0", "~") for step in path.split("/")[1:]]
        changes |= dict.fromkeys(_changes(steps, str(operation.get("op")), operation.get("value")))
    return list(changes)


def _changes(steps: list[str], op: str, value: Any) -> Iterator[str]:
    match steps:
        case (
            ["metadata", "labels" | "annotations"]
            | [*_, "resources"]
            | [*_, "resources", "limits" | "requests"]
        ) if isinstance(value, dict):
            for key, part in value.items():
                yield from _changes([*steps, key], op, part)
        case ["metadata", "annotations", key] if key == _NOTE_OF_DEFAULTS:
            pass
        case ["metadata", "labels" | "annotations" as kind, key]:
            yield f"{singular(kind)} {key} {_KEY_DONE.get(op, op)}"
        case [*_, "limits" | "requests" as side, resource]:
            yield f"{side}.{resource} {_DONE.get(op, op)}"
        case [*_, last]:
            yield f"{last} {_DONE.get(op, op)}"


def _rest(number: int) -> str:
    return f", +{number}" if number > 0 else ""


def _fault(violation: Mapping[str, Any]) -> str:
    """A violation with its policy's name before it."""
    policy = violation.get("policy") or {}
    words = violation_words(violation)
    return f"{policy['name']}: {words}" if policy.get("name") else words


def violation_words(violation: Mapping[str, Any]) -> str:
    """A violation by its numbers, or its message where there is more to say."""
    return _numbers(violation) or str(violation.get("message", ""))


def _numbers(violation: Mapping[str, Any]) -> str:
    """The numbers that were compared; empty where there is more to say than numbers."""
    numbers = violation.get("numbers") or {}
    resource, message = numbers.get("resource"), str(violation.get("message", ""))
    match violation.get("reason"):
        case Reason.REJECTED_BY_RULE if message.startswith("rejected by "):
            return f"rejected by rule {violation.get('rule')}"
        case Reason.EXCEEDED_QUOTA if resource and numbers.get("used"):
            used, requested, hard = (numbers.get(role) for role in ("used", "requested", "hard"))
            return f"{resource} {used} + {requested} > {hard}"
        case Reason.MUST_SPECIFY if resource:
            return f"{resource} is not set"
        case Reason.RATIO_CONSTRAINT if resource and numbers.get("ratio"):
            ratio = _plain(numbers["ratio"])
            return f"{resource} limit / request {ratio} > {numbers.get('enforced')}"
        case Reason.MAX_CONSTRAINT | Reason.MIN_CONSTRAINT as reason if resource:
            return _bound(_BOUNDS[Reason(reason)], numbers, message)
    return ""


def _bound(sign: str, numbers: Mapping[str, str], message: str) -> str:
    # Kubernetes' own words tell which of the two amounts broke the bound.
    for side in ("limit", "request"):
        if message.endswith(f"but {side} is {numbers.get(side)}"):
            return f"{numbers['resource']} {numbers[side]} {sign} {numbers.get('enforced')}"
        if message.endswith(f"No {side} is specified"):
            return f"{numbers['resource']} {side} is not set"
    return ""


def _plain(ratio: str) -> str:
    return ratio.rstrip("0").rstrip(".") if "." in ratio else ratio
