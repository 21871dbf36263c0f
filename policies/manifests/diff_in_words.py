"""Changes of a policy as phrases: "raised from", "added", "removed", "rules in another order"."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from engine.policy import ENFORCEMENT_ANNOTATION
from engine.quantity import Quantity, QuantityError
from policies.manifests.sentences import sentence_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    Manifest = Mapping[str, Any]

_AMOUNTS: Final = {
    "min": "min",
    "max": "max",
    "default": "default limit",
    "defaultRequest": "default request",
    "maxLimitRequestRatio": "limit/request ratio",
}


def changes(before: Manifest | None, after: Manifest | None) -> list[str]:
    """The differences, one line each; none for equal manifests."""
    if before is None or after is None:
        made = before is None and after is not None
        whole = after or before
        if whole is None:
            return []
        kind = str(whole.get("kind"))
        found = [f"{kind} {'created' if made else 'deleted'}"]
        return [*found, *_OF_KIND.get(kind, _other)({"kind": kind}, whole)] if made else found
    return [*_metadata(before, after), *_OF_KIND.get(str(after.get("kind")), _other)(before, after)]


def _metadata(before: Manifest, after: Manifest) -> Iterator[str]:
    old, new = before.get("metadata") or {}, after.get("metadata") or {}
    modes = [
        (one.get("annotations") or {}).get(ENFORCEMENT_ANNOTATION, "enforce") for one in (old, new)
    ]
    if modes[0] != modes[1]:
        yield f"enforcement changed from {modes[0]} to {modes[1]}"
    for name, word in (("labels", "label"), ("annotations", "annotation")):
        mine, theirs = old.get(name) or {}, new.get(name) or {}
        for key in sorted((mine.keys() | theirs.keys()) - {ENFORCEMENT_ANNOTATION}):
            yield from _value(f"{word} {key}", mine.get(key), theirs.get(key))


def _value(what: str, old: Any, new: Any) -> Iterator[str]:
    if old == new:
        return
    if old is None:
        yield f"{what} set to {new}"
    elif new is None:
        yield f"{what} removed (was {old})"
    else:
        yield f"{what} changed from {old} to {new}"


def _amount(what: str, old: Any, new: Any) -> Iterator[str]:
    """Whether an amount was raised or lowered, or only written differently."""
    if old == new:
        return
    if old is None or new is None:
        yield from _value(what, old, new)
        return
    one, other = _quantity(old), _quantity(new)
    if one is None or other is None:
        yield from _value(what, old, new)
    elif one == other:
        yield f"{what} written {new} for {old}, the same amount"
    else:
        yield f"{what} {'lowered' if other < one else 'raised'} from {old} to {new}"


def _quantity(text: Any) -> Quantity | None:
    try:
        return Quantity.parse_json(text)
    except QuantityError:
        return None


def _limit_range(before: Manifest, after: Manifest) -> Iterator[str]:
    old, new = _items(before), _items(after)
    for kind in dict.fromkeys([*old, *new]):
        mine, theirs = old.get(kind, {}), new.get(kind, {})
        if not mine and kind not in old:
            yield f"{kind or 'item'} added"
        elif kind not in new:
            yield f"{kind or 'item'} removed"
        for name, resource in dict.fromkeys([*mine, *theirs]):
            what = f"{resource} {_AMOUNTS[name]} of {kind}"
            yield from _amount(what, mine.get((name, resource)), theirs.get((name, resource)))


def _items(manifest: Manifest) -> dict[str, dict[tuple[str, str], str]]:
    """Amounts by type, then by column and resource; items of one type are put together."""
    found: dict[str, dict[tuple[str, str], str]] = {}
    for item in (manifest.get("spec") or {}).get("limits") or []:
        amounts = found.setdefault(str((item or {}).get("type") or ""), {})
        for name in _AMOUNTS:
            for resource, value in ((item or {}).get(name) or {}).items():
                amounts[name, resource] = "0" if value is None else str(value)
    return found


def _resource_quota(before: Manifest, after: Manifest) -> Iterator[str]:
    old, new = before.get("spec") or {}, after.get("spec") or {}
    mine, theirs = old.get("hard") or {}, new.get("hard") or {}
    for name in dict.fromkeys([*mine, *theirs]):
        yield from _amount(f"limit of {name}", mine.get(name), theirs.get(name))
    yield from _members("scope", _scopes(old), _scopes(new))


def _scopes(spec: Manifest) -> list[str]:
    entries = (spec.get("scopeSelector") or {}).get("matchExpressions") or []
    return [*(spec.get("scopes") or []), *(_scope(entry) for entry in entries)]


def _scope(entry: Manifest) -> str:
    values = ", ".join(str(value) for value in entry.get("values") or [])
    return f"{entry.get('scopeName')} {entry.get('operator')} {values}".strip()


def _members(what: str, old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    yield from (f"{what} {each} removed" for each in old if each not in new)
    yield from (f"{what} {each} added" for each in new if each not in old)


def _metadata_policy(before: Manifest, after: Manifest) -> Iterator[str]:
    old, new = before.get("spec") or {}, after.get("spec") or {}
    yield from _rules(old.get("rules") or [], new.get("rules") or [])
    for flag in ("ratchet", "strict"):
        if bool(old.get(flag)) != bool(new.get(flag)):
            yield f"{flag} switched {'on' if new.get(flag) else 'off'}"


def _rules(old: Sequence[Any], new: Sequence[Any]) -> Iterator[str]:
    left = [rule for rule in old if rule not in new]
    came = [(number, rule) for number, rule in enumerate(new) if rule not in old]
    # As many rules as before: they were changed in place, not removed and added.
    if len(old) == len(new) and len(left) == len(came):
        for rule, (number, other) in zip(left, came, strict=True):
            yield f"rule {number + 1} changed from: {_rule(rule)}; to: {_rule(other)}"
    else:
        yield from (f"rule removed: {_rule(rule)}" for rule in left)
        yield from (f"rule {number + 1} added: {_rule(rule)}" for number, rule in came)
    if not left and not came and list(old) != list(new):
        yield "rules in another order"


def _rule(rule: Any) -> str:
    return sentence_of(rule if isinstance(rule, dict) else {})


def _priority_class(before: Manifest, after: Manifest) -> Iterator[str]:
    yield from _amount("value", before.get("value"), after.get("value"))
    if bool(before.get("globalDefault")) != bool(after.get("globalDefault")):
        yield f"{'becomes' if after.get('globalDefault') else 'is no longer'} the cluster's default"
    for name in ("preemptionPolicy", "description"):
        yield from _value(name, before.get(name), after.get(name))


def _configuration(before: Manifest, after: Manifest) -> Iterator[str]:
    old, new = ([_entry(e) for e in one.get("limitedResources") or []] for one in (before, after))
    yield from _members("limited resource", old, new)
    if sorted(old) == sorted(new) and old != new:
        yield "limited resources in another order"


def _entry(entry: Manifest) -> str:
    group = f".{entry['apiGroup']}" if entry.get("apiGroup") else ""
    contains = ", ".join(str(word) for word in entry.get("matchContains") or [])
    scopes = "; ".join(_scope(scope) for scope in entry.get("matchScopes") or [])
    words = [f"{entry.get('resource')}{group}"]
    words += [f"using {contains}"] if contains else []
    words += [f"where {scopes}"] if scopes else []
    return " ".join(words)


def _other(before: Manifest, after: Manifest) -> Iterator[str]:
    for name in sorted((before.keys() | after.keys()) - {"metadata", "kind", "apiVersion"}):
        yield from _value(name, before.get(name), after.get(name))


_OF_KIND: Final[Mapping[str, Callable[[Manifest, Manifest], Iterator[str]]]] = {
    "LimitRange": _limit_range,
    "ResourceQuota": _resource_quota,
    "MetadataPolicy": _metadata_policy,
    "PriorityClass": _priority_class,
    "ResourceQuotaConfiguration": _configuration,
}
