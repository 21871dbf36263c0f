"""Changes of a policy as phrases: "raised from", "added", "removed", "rules in another order"."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from engine.policy import ENFORCEMENT_ANNOTATION, IN_API_SERVER_ANNOTATION
from engine.quantity import Quantity, QuantityError
from policies.manifests.sentences import sentence_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    Manifest = Mapping[str, Any]

AMOUNT_WORDS: Final = {
    "min": "min",
    "max": "max",
    "default": "default limit",
    "defaultRequest": "default request",
    "maxLimitRequestRatio": "limit/request ratio",
}
_MODES: Final = (
    (ENFORCEMENT_ANNOTATION, "enforce", "enforcement"),
    (IN_API_SERVER_ANNOTATION, "off", "enforcement in the API server"),
)


def changes(before: Manifest | None, after: Manifest | None) -> list[str]:
    """The differences, one line each; none for equal manifests."""
    if before is None or after is None:
        is_created = before is None and after is not None
        whole = after or before
        if whole is None:
            return []
        kind = str(whole.get("kind"))
        phrases = [f"{kind} {'created' if is_created else 'deleted'}"]
        return (
            [*phrases, *_CHANGES_OF_KIND.get(kind, _other_changes)({"kind": kind}, whole)]
            if is_created
            else phrases
        )
    return list(_phrases(before, after))


def are_different(before: Manifest | None, after: Manifest | None) -> bool:
    """Whether ``changes`` has any line, found by the first of them."""
    if before is None or after is None:
        return before is not after
    return any(True for _ in _phrases(before, after))


def _phrases(before: Manifest, after: Manifest) -> Iterator[str]:
    yield from _metadata_changes(before, after)
    yield from _CHANGES_OF_KIND.get(str(after.get("kind")), _other_changes)(before, after)


def _metadata_changes(before: Manifest, after: Manifest) -> Iterator[str]:
    old, new = before.get("metadata") or {}, after.get("metadata") or {}
    for key, default, said in _MODES:
        was, now = ((one.get("annotations") or {}).get(key, default) for one in (old, new))
        if was != now:
            yield f"{said} changed from {was} to {now}"
    for name, word in (("labels", "label"), ("annotations", "annotation")):
        mine, theirs = old.get(name) or {}, new.get(name) or {}
        for key in sorted((mine.keys() | theirs.keys()) - {key for key, *_ in _MODES}):
            yield from _value_change(f"{word} {key}", mine.get(key), theirs.get(key))


def _value_change(value_words: str, old: Any, new: Any) -> Iterator[str]:
    if old == new:
        return
    if old is None:
        yield f"{value_words} set to {new}"
    elif new is None:
        yield f"{value_words} removed (was {old})"
    else:
        yield f"{value_words} changed from {old} to {new}"


def _amount_change(what: str, old: Any, new: Any) -> Iterator[str]:
    """Whether an amount was raised or lowered, or only written differently."""
    if old == new:
        return
    if old is None or new is None:
        yield from _value_change(what, old, new)
        return
    old_amount, new_amount = _quantity(old), _quantity(new)
    if old_amount is None or new_amount is None:
        yield from _value_change(what, old, new)
    elif old_amount == new_amount:
        yield f"{what} written {new} for {old}, the same amount"
    else:
        yield f"{what} {'lowered' if new_amount < old_amount else 'raised'} from {old} to {new}"


def _quantity(text: Any) -> Quantity | None:
    try:
        return Quantity.parse_json(text)
    except QuantityError:
        return None


def _limit_range_changes(before: Manifest, after: Manifest) -> Iterator[str]:
    old_items, new_items = _limit_items(before), _limit_items(after)
    for kind in dict.fromkeys([*old_items, *new_items]):
        old_amounts, new_amounts = old_items.get(kind, {}), new_items.get(kind, {})
        if not old_amounts and kind not in old_items:
            yield f"{kind or 'item'} added"
        elif kind not in new_items:
            yield f"{kind or 'item'} removed"
        for name, resource in dict.fromkeys([*old_amounts, *new_amounts]):
            amount_words = f"{resource} {AMOUNT_WORDS[name]} of {kind}"
            yield from _amount_change(
                amount_words, old_amounts.get((name, resource)), new_amounts.get((name, resource))
            )


def _limit_items(manifest: Manifest) -> dict[str, dict[tuple[str, str], str]]:
    """Amounts by type, then by column and resource; items of one type are put together."""
    amounts_by_type: dict[str, dict[tuple[str, str], str]] = {}
    for limits_item in (manifest.get("spec") or {}).get("limits") or []:
        amounts = amounts_by_type.setdefault(str((limits_item or {}).get("type") or ""), {})
        for name in AMOUNT_WORDS:
            for resource, value in ((limits_item or {}).get(name) or {}).items():
                amounts[name, resource] = "0" if value is None else str(value)
    return amounts_by_type


def _quota_changes(before: Manifest, after: Manifest) -> Iterator[str]:
    old_spec, new_spec = before.get("spec") or {}, after.get("spec") or {}
    old_hard, new_hard = old_spec.get("hard") or {}, new_spec.get("hard") or {}
    for name in dict.fromkeys([*old_hard, *new_hard]):
        yield from _amount_change(f"limit of {name}", old_hard.get(name), new_hard.get(name))
    yield from _member_changes("scope", _scope_texts(old_spec), _scope_texts(new_spec))


def _scope_texts(spec: Manifest) -> list[str]:
    entries = (spec.get("scopeSelector") or {}).get("matchExpressions") or []
    return [*(spec.get("scopes") or []), *(_scope_words(entry) for entry in entries)]


def _scope_words(entry: Manifest) -> str:
    values = ", ".join(str(value) for value in entry.get("values") or [])
    return f"{entry.get('scopeName')} {entry.get('operator')} {values}".strip()


def _member_changes(member_words: str, old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    yield from (f"{member_words} {member} removed" for member in old if member not in new)
    yield from (f"{member_words} {member} added" for member in new if member not in old)


def _metadata_policy_changes(before: Manifest, after: Manifest) -> Iterator[str]:
    old_spec, new_spec = before.get("spec") or {}, after.get("spec") or {}
    yield from _rule_changes(old_spec.get("rules") or [], new_spec.get("rules") or [])
    for flag in ("ratchet", "strict"):
        if bool(old_spec.get(flag)) != bool(new_spec.get(flag)):
            yield f"{flag} switched {'on' if new_spec.get(flag) else 'off'}"


def _rule_changes(old_rules: Sequence[Any], new_rules: Sequence[Any]) -> Iterator[str]:
    removed_rules = [rule for rule in old_rules if rule not in new_rules]
    came = [(number, rule) for number, rule in enumerate(new_rules) if rule not in old_rules]
    # As many rules as before: they were changed in place, not removed and added.
    if len(old_rules) == len(new_rules) and len(removed_rules) == len(came):
        for rule, (number, other) in zip(removed_rules, came, strict=True):
            before, after = _rule_sentence(rule), _rule_sentence(other)
            yield f"rule {number + 1} changed from: {before}; to: {after}"
    else:
        yield from (f"rule removed: {_rule_sentence(rule)}" for rule in removed_rules)
        yield from (f"rule {number + 1} added: {_rule_sentence(rule)}" for number, rule in came)
    if not removed_rules and not came and list(old_rules) != list(new_rules):
        yield "rules in another order"


def _rule_sentence(rule: Any) -> str:
    return sentence_of(rule if isinstance(rule, dict) else {})


def _priority_class_changes(before: Manifest, after: Manifest) -> Iterator[str]:
    yield from _amount_change("value", before.get("value"), after.get("value"))
    if bool(before.get("globalDefault")) != bool(after.get("globalDefault")):
        yield f"{'becomes' if after.get('globalDefault') else 'is no longer'} the cluster's default"
    for class_field in ("preemptionPolicy", "description"):
        yield from _value_change(class_field, before.get(class_field), after.get(class_field))


def _configuration_changes(before: Manifest, after: Manifest) -> Iterator[str]:
    old_words, new_words = (
        [_limited_resource_words(e) for e in one.get("limitedResources") or []]
        for one in (before, after)
    )
    yield from _member_changes("limited resource", old_words, new_words)
    if sorted(old_words) == sorted(new_words) and old_words != new_words:
        yield "limited resources in another order"


def _limited_resource_words(entry: Manifest) -> str:
    group = f".{entry['apiGroup']}" if entry.get("apiGroup") else ""
    contained_words = ", ".join(str(word) for word in entry.get("matchContains") or [])
    scope_words = "; ".join(_scope_words(scope) for scope in entry.get("matchScopes") or [])
    entry_words = [f"{entry.get('resource')}{group}"]
    entry_words += [f"using {contained_words}"] if contained_words else []
    entry_words += [f"where {scope_words}"] if scope_words else []
    return " ".join(entry_words)


def _class_changes(before: Manifest, after: Manifest) -> Iterator[str]:
    old_spec, new_spec = before.get("spec") or {}, after.get("spec") or {}
    for name in ("description", "onLeave"):
        yield from _value_change(name, old_spec.get(name), new_spec.get(name))
    for name, word in (("clusters", "cluster pattern"), ("names", "name pattern")):
        old, new = (
            (spec.get("selector") or {}).get(name) if name == "names" else spec.get(name)
            for spec in (old_spec, new_spec)
        )
        yield from _member_changes(word, old or [], new or [])
    old_labels, new_labels = (
        {k: v for k, v in (spec.get("selector") or {}).items() if k != "names"}
        for spec in (old_spec, new_spec)
    )
    if old_labels != new_labels:
        yield "selector of labels changed"
    yield from _parameter_changes(old_spec, new_spec)
    old_policies, new_policies = _policies_by_title(old_spec), _policies_by_title(new_spec)
    for title in dict.fromkeys([*old_policies, *new_policies]):
        old_policy, new_policy = old_policies.get(title), new_policies.get(title)
        if old_policy is None or new_policy is None:
            yield f"{title} {'added' if old_policy is None else 'removed'}"
        else:
            yield from (f"{title}: {line}" for line in changes(old_policy, new_policy))


def _parameter_changes(before: Manifest, after: Manifest) -> Iterator[str]:
    old, new = (
        {each.get("name"): each.get("default") for each in spec.get("parameters") or []}
        for spec in (before, after)
    )
    for name in dict.fromkeys([*old, *new]):
        yield from _value_change(f"parameter {name}", old.get(name), new.get(name))


def _policies_by_title(spec: Manifest) -> dict[str, Manifest]:
    return {
        f"{each.get('kind')} {(each.get('metadata') or {}).get('name')}": each
        for each in spec.get("policies") or []
    }


def _other_changes(before: Manifest, after: Manifest) -> Iterator[str]:
    for other_field in sorted((before.keys() | after.keys()) - {"metadata", "kind", "apiVersion"}):
        yield from _value_change(other_field, before.get(other_field), after.get(other_field))


_CHANGES_OF_KIND: Final[Mapping[str, Callable[[Manifest, Manifest], Iterator[str]]]] = {
    "LimitRange": _limit_range_changes,
    "ResourceQuota": _quota_changes,
    "MetadataPolicy": _metadata_policy_changes,
    "PriorityClass": _priority_class_changes,
    "NamespaceClass": _class_changes,
    "ResourceQuotaConfiguration": _configuration_changes,
}
