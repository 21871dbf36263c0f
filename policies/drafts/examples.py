"""ExampleObjects of a draft: small objects at and beyond its amounts, or with its labels.

They are input for a trial alone: what happens to them is the engine's decision.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from engine.quantity import Quantity, QuantityError
from policies.drafts.preview import pod_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    Manifest = Mapping[str, Any]

MOST: Final = 5
"""Examples that are offered: a trial needs few."""
_COMPUTE: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
_TAKES_NO_VALUE: Final = ("Exists", "DoesNotExist")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleObject:
    """An object to try, and its name among the draft's examples."""

    title: str
    manifest: Mapping[str, Any]


def examples_of(manifest: Manifest) -> list[ExampleObject]:
    """Examples for a policy: a bare pod first, then those that its own values suggest."""
    make = _MADE.get(str(manifest.get("kind")))
    if make is None:
        return []
    bare = ExampleObject(title="Bare pod", manifest=pod_of({}))
    return [bare, *make(manifest.get("spec") or {})][:MOST]


def judged_kinds(manifest: Manifest) -> Collection[str] | None:
    """The kinds of objects that a policy judges; None for all."""
    spec, kind = manifest.get("spec") or {}, manifest.get("kind")
    if kind == "LimitRange":
        types = {item.get("type") for item in _items(spec)}
        claims = {"PersistentVolumeClaim"} & types
        return claims | ({"Pod"} if types - claims or not claims else set())
    if kind == "ResourceQuota":
        names = set(spec.get("hard") or {})
        is_of_pods = all(_compute_name(name) or name == "pods" for name in names)
        return {"Pod"} if is_of_pods else None
    return None


def _items(spec: Manifest) -> list[Mapping[str, Any]]:
    limits = spec.get("limits")
    return [item for item in limits if isinstance(item, dict)] if isinstance(limits, list) else []


def _compute_name(name: str) -> str:
    """The resource of a container that a quota's name bounds; empty for other names."""
    resource = name.removeprefix("requests.").removeprefix("limits.")
    return resource if resource in _COMPUTE else ""


def _of_range(spec: Manifest) -> Iterator[ExampleObject]:
    for item in _items(spec):
        if item.get("type") != "Container":
            continue
        for bound, title, factor in (("max", "maximum", 2), ("min", "minimum", 0)):
            amounts = item.get(bound)
            if not isinstance(amounts, dict) or not amounts:
                continue
            given = {name: str(amount) for name, amount in amounts.items()}
            yield ExampleObject(title=f"At the {title}", manifest=pod_of(_both(given)))
            beyond = {name: _changed(amount, factor) for name, amount in given.items()}
            above = "Above" if factor else "Below"
            yield ExampleObject(title=f"{above} the {title}", manifest=pod_of(_both(beyond)))


def _both(amounts: Mapping[str, str]) -> dict[str, Any]:
    return {"requests": dict(amounts), "limits": dict(amounts)}


def _changed(amount: str, factor: int) -> str:
    """Twice the amount, or half of it."""
    try:
        quantity = Quantity.parse(amount)
    except QuantityError:
        return amount
    nano = quantity.nano * 2 if factor else quantity.nano // 2
    return str(Quantity(nano, quantity.format).canonical())


def _of_quota(spec: Manifest) -> Iterator[ExampleObject]:
    found = spec.get("hard")
    hard: Mapping[str, Any] = found if isinstance(found, dict) else {}
    names = {name: _compute_name(name) for name in hard}
    small = {"cpu": "100m", "memory": "128Mi", "ephemeral-storage": "1Gi"}
    resources = sorted({name for name in names.values() if name})
    if not resources:
        return
    amounts = {name: small[name] for name in resources}
    classes = _priority_classes(spec)
    more = {"priorityClassName": classes[0]} if classes else {}
    yield ExampleObject(title="Small pod", manifest=pod_of(_both(amounts), **more))
    whole = {resource: str(hard[name]) for name, resource in names.items() if resource}
    yield ExampleObject(title="As large as the limits", manifest=pod_of(_both(whole), **more))


def _priority_classes(spec: Manifest) -> list[str]:
    """The classes that a quota counts, by its scope selector."""
    entries = (spec.get("scopeSelector") or {}).get("matchExpressions") or []
    return [
        value
        for entry in entries
        if entry.get("scopeName") == "PriorityClass" and entry.get("operator") == "In"
        for value in entry.get("values") or []
    ]


def _of_rules(spec: Manifest) -> Iterator[ExampleObject]:
    for number, rule in enumerate(spec.get("rules") or [], 1):
        predicate = rule.get("policyPredicate") if isinstance(rule, dict) else None
        metadata: dict[str, Any] = {}
        for selector, field in (("labelSelector", "labels"), ("annotationSelector", "annotations")):
            if values := _matching((predicate or {}).get(selector) or {}):
                metadata[field] = values
        if metadata:
            pod = pod_of({})
            pod["metadata"] = {**pod["metadata"], **metadata}
            yield ExampleObject(title=f"With the values of rule {number}", manifest=pod)


def _matching(selector: Manifest) -> dict[str, str]:
    """Values that a selector names."""
    values = {key: str(value) for key, value in (selector.get("matchLabels") or {}).items()}
    for entry in selector.get("matchExpressions") or []:
        if entry.get("operator") in ("In", "NotIn") and entry.get("values"):
            values[entry["key"]] = str(entry["values"][0])
        elif entry.get("operator") in _TAKES_NO_VALUE and entry.get("key"):
            values[entry["key"]] = "example"
    return values


_MADE: Final = {"LimitRange": _of_range, "ResourceQuota": _of_quota, "MetadataPolicy": _of_rules}
