"""Stored columns to engine values: each distinct content is decoded once, equal ones are shared.

Columns come as the driver gives them: quantities and JSON as text. What they mean is decided by
the engine's own decoders, which see the manifest that the columns stand for.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from policies.engine.limit_range import decode_limit_range
from policies.engine.metadata_policy import decode_metadata_policy
from policies.engine.policy import (
    Enforcement,
    LimitRange,
    MetadataPolicy,
    MetadataPolicyRule,
    ResourceQuota,
)
from policies.engine.resource_quota import decode_resource_quota
from policies.models.limit_range import MAPS
from policies.models.metadata_policy import SELECTORS, UPDATES

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from policies.engine.policy import LimitRangeItem

Row = tuple[Any, ...]
V = TypeVar("V")
P = TypeVar("P", LimitRange, MetadataPolicy, ResourceQuota)


class Names(NamedTuple):
    """What every policy has of its own."""

    namespace: str
    name: str
    enforcement: str
    revision: int

    def give(self, policy: P) -> P:
        """Give a policy these."""
        return replace(
            policy,
            name=self.name,
            namespace=self.namespace,
            enforcement=Enforcement(self.enforcement),
            revision=self.revision,
        )


class Decoder:
    """Decodes during one refresh; what it keeps goes with it, the shared values stay in use."""

    def __init__(self) -> None:
        self._known: dict[Hashable, Any] = {}

    def _once(self, key: tuple[str, Hashable], decode: Callable[[Any], V]) -> V:
        found: V | None = self._known.get(key)
        if found is None:
            found = self._known[key] = decode(key[1])
        return found

    def limit_range(self, names: Names, rows: Sequence[Row]) -> LimitRange:
        """Rows in order: position, type, resource, and the amounts in the order of ``MAPS``."""
        return names.give(self._once(("LimitRange", tuple(rows)), self._limit_range))

    def _limit_range(self, rows: Sequence[Row]) -> LimitRange:
        items: dict[int, list[Row]] = {}
        for position, *columns in rows:
            items.setdefault(position, []).append(tuple(columns))
        decoded = (self._once(("item", tuple(item)), _item) for item in items.values())
        return LimitRange(name="", items=tuple(decoded))

    def metadata_policy(
        self, names: Names, rows: Sequence[Row], *, ratchet: bool, strict: bool
    ) -> MetadataPolicy:
        """Rows in order: both selectors, reject, updated labels and annotations."""
        key = (tuple(rows), bool(ratchet), bool(strict))
        return names.give(self._once(("MetadataPolicy", key), self._metadata_policy))

    def _metadata_policy(self, key: tuple[Sequence[Row], bool, bool]) -> MetadataPolicy:
        rows, ratchet, strict = key
        rules = tuple(self._once(("rule", row), _rule) for row in rows)
        return MetadataPolicy(name="", rules=rules, ratchet=ratchet, strict=strict)

    def resource_quota(
        self, names: Names, hard: Sequence[Row], *, scopes: str, expressions: Sequence[Row] | None
    ) -> ResourceQuota:
        """Rows in order: resource and amount; scope name, operator and values.

        No expressions are an empty selector, None is no selector.
        """
        key = (tuple(hard), scopes, None if expressions is None else tuple(expressions))
        return names.give(self._once(("ResourceQuota", key), _resource_quota))


def _item(rows: Sequence[Row]) -> LimitRangeItem:
    item: dict[str, Any] = {"type": rows[0][0]}
    for _, resource, *amounts in rows:
        for name, text in zip(MAPS, amounts, strict=True):
            if text is not None:
                item.setdefault(name, {})[resource] = text or None
    return decode_limit_range({"spec": {"limits": [item]}}).items[0]


def _rule(row: Row) -> MetadataPolicyRule:
    labels, annotations, reject, *updates = row
    selectors = zip(SELECTORS, (_json(labels), _json(annotations)), strict=True)
    rule = {
        "policyPredicate": {name: value for name, value in selectors if value is not None},
        "policyAction": {
            "reject": bool(reject),
            **{name: _json(text) for name, text in zip(UPDATES, updates, strict=True)},
        },
    }
    return decode_metadata_policy({"spec": {"rules": [rule]}}).rules[0]


def _resource_quota(
    key: tuple[Sequence[Row], str, Sequence[Row] | None],
) -> ResourceQuota:
    rows, scopes, expressions = key
    spec: dict[str, Any] = {
        "hard": {resource: amount or None for resource, amount in rows},
        "scopes": _json(scopes),
    }
    if expressions is not None:
        entries = [
            {"scopeName": name, "operator": operator, "values": _json(values)}
            for name, operator, values in expressions
        ]
        spec["scopeSelector"] = {"matchExpressions": entries}
    return decode_resource_quota({"spec": spec})


def _json(text: str | None) -> Any:
    return None if text is None else json.loads(text)
