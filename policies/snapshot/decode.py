"""Decoder of rows, texts and JSON columns to the engine's policies; equal content made ``once``.

Columns come as the driver gives them: quantities and JSON as text. The engine's own decoders read
them; this module only puts each decoded amount where the manifest would have it.
"""

from __future__ import annotations

import json
from dataclasses import replace
from sys import intern
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from engine.limit_range import default_item
from engine.metadata_policy import decode_metadata_policy
from engine.policy import (
    Enforcement,
    LimitRange,
    LimitRangeItem,
    MetadataPolicy,
    MetadataPolicyRule,
    ResourceQuota,
)
from engine.resource_list import parse, round_up, stored
from engine.resource_quota import decode_resource_quota
from policies.models.limit_range import MAPS
from policies.models.metadata_policy import SELECTORS, UPDATES

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    from engine.quantity import Quantity
    from engine.resource_list import ResourceList

Row = tuple[Any, ...]
V = TypeVar("V")
P = TypeVar("P", LimitRange, MetadataPolicy, ResourceQuota)
REMEMBERED: Final = 4096


class Names(NamedTuple):
    """The columns that make a policy of a decoded content."""

    namespace: str
    name: str
    enforcement: str
    revision: int

    def give(self, policy: P) -> P:
        """Add names, enforcement and revision to a decoded content."""
        return replace(
            policy,
            name=intern(self.name),
            namespace=self.namespace,
            enforcement=Enforcement(self.enforcement),
            revision=self.revision,
        )


class _Memory:
    """A cache of the last results: at least ``REMEMBERED`` of them, at most twice as many.

    Two generations cost one look-up more than a dictionary; an LRU moves an entry at each use.
    """

    def __init__(self) -> None:
        self._young: dict[Hashable, Any] = {}
        self._old: dict[Hashable, Any] = {}

    def once(self, content: Hashable, make: Callable[..., V], *arguments: Any) -> V:
        """The result for a key, made of the arguments if it is new."""
        remembered: V | None = self._young.get(content)
        if remembered is None:
            remembered = self._old.get(content)
            if remembered is None:
                remembered = make(*arguments)
            if len(self._young) >= REMEMBERED:
                self._old, self._young = self._young, {}
            self._young[content] = remembered
        return remembered


class Decoder:
    """Decodes during one refresh: equal contents, as most fleets have, share their values."""

    def __init__(self) -> None:
        self._specs = _Memory()
        self._parts = _Memory()
        self._amounts = _Memory()
        self._lists = _Memory()

    def limit_range(self, names: Names, rows: Sequence[Row]) -> LimitRange:
        """Rows in order: position, type, resource, and the amounts in the order of ``MAPS``."""
        content = ("LimitRange", *rows)
        return names.give(self._specs.once(content, self._limit_range, rows))

    def _limit_range(self, rows: Sequence[Row]) -> LimitRange:
        item_rows: dict[int, list[Row]] = {}
        for limit_row in rows:
            item_rows.setdefault(limit_row[0], []).append(limit_row[1:])
        decoded = (self._parts.once(tuple(item), self._item, item) for item in item_rows.values())
        return LimitRange(name="", items=tuple(decoded))

    def _item(self, rows: Sequence[Row]) -> LimitRangeItem:
        """Put each amount into its map; the engine then derives the defaults."""
        amount_maps: dict[str, dict[str, Quantity]] = {column: {} for column in MAPS.values()}
        for _, resource, *texts in rows:
            for amounts, text in zip(amount_maps.values(), texts, strict=True):
                if text is not None:
                    amounts[intern(resource)] = self._amounts.once(text, _stored_amount, text)
        item = default_item(LimitRangeItem(type=intern(rows[0][0]), **amount_maps))
        shared = {name: self._shared(getattr(item, name)) for name in amount_maps}
        return LimitRangeItem(type=item.type, **shared)

    def metadata_policy(
        self, names: Names, rows: Sequence[Row], *, ratchet: bool, strict: bool
    ) -> MetadataPolicy:
        """Rows in order: both selectors, reject, updated labels and annotations."""
        flags = (bool(ratchet), bool(strict))
        content = ("MetadataPolicy", flags, *rows)
        return names.give(self._specs.once(content, self._metadata_policy, rows, flags))

    def _metadata_policy(self, rows: Sequence[Row], flags: tuple[bool, bool]) -> MetadataPolicy:
        ratchet, strict = flags
        rules = tuple(self._parts.once(rule_row, _decoded_rule, rule_row) for rule_row in rows)
        return MetadataPolicy(name="", rules=rules, ratchet=ratchet, strict=strict)

    def resource_quota(
        self, names: Names, hard: Sequence[Row], *, scopes: str, expressions: Sequence[Row] | None
    ) -> ResourceQuota:
        """Rows in order: resource and amount; scope name, operator and values.

        No expressions are an empty selector, None is no selector.
        """
        scoped = (scopes, None if expressions is None else tuple(expressions))
        content = ("ResourceQuota", scoped, *hard)
        return names.give(self._specs.once(content, self._resource_quota, hard, scoped))

    def _resource_quota(self, hard: Sequence[Row], scoped: Row) -> ResourceQuota:
        """Put the limits, each decoded alone, into a quota of these scopes."""
        # Decoded one by one, quotas with different sets of limits share the values.
        entries = [self._parts.once(hard_row, _hard_limit, *hard_row) for hard_row in hard]
        spec_hard, enforced, used = (
            self._shared({name: amount for entry in entries for name, amount in entry[i].items()})
            for i in range(3)
        )
        quota_of_scopes = self._parts.once(scoped, _quota_with_scopes, *scoped)
        return replace(quota_of_scopes, spec_hard=spec_hard, hard=enforced, used=used)

    def _shared(self, amounts: Mapping[str, Quantity]) -> ResourceList:
        """One shared map for the same names and amounts.

        The key has the identity of each amount: 1Gi equals 1024Mi, but is shown differently.
        """
        amount_identities = tuple([(name, id(amount)) for name, amount in amounts.items()])
        return self._lists.once(amount_identities, dict, amounts)


def known_only(quota: ResourceQuota, uncounted: str) -> ResourceQuota:
    """Remove the names from ``used`` that are not counted yet; nearly always there are none."""
    # Compared as text: parsing this column of every quota would take longer.
    if uncounted == "[]":
        return quota
    uncounted_names = set(_json_column(uncounted))
    used = {name: amount for name, amount in quota.used.items() if name not in uncounted_names}
    return replace(quota, used=used)


def _stored_amount(text: str) -> Quantity:
    """Decode one amount of a range as the engine does: rounded, then as storage returns it."""
    return stored(round_up(parse({"": text or None})))[""]


def _hard_limit(resource: str, amount: str) -> tuple[ResourceList, ResourceList, ResourceList]:
    """Decode one limit of a quota: as written, as enforced, and its used amount."""
    quota = decode_resource_quota({"spec": {"hard": {intern(resource): amount or None}}})
    return quota.spec_hard, quota.hard, quota.used


def _quota_with_scopes(scopes: str, expressions: Sequence[Row] | None) -> ResourceQuota:
    spec: dict[str, Any] = {"scopes": _json_column(scopes)}
    if expressions is not None:
        match_expressions = [
            {"scopeName": name, "operator": operator, "values": _json_column(values)}
            for name, operator, values in expressions
        ]
        spec["scopeSelector"] = {"matchExpressions": match_expressions}
    return decode_resource_quota({"spec": spec})


def _decoded_rule(rule_row: Row) -> MetadataPolicyRule:
    labels, annotations, reject, *updates = rule_row
    selectors = zip(SELECTORS, (_json_column(labels), _json_column(annotations)), strict=True)
    rule_manifest = {
        "policyPredicate": {name: value for name, value in selectors if value is not None},
        "policyAction": {
            "reject": bool(reject),
            **{name: _json_column(text) for name, text in zip(UPDATES, updates, strict=True)},
        },
    }
    return decode_metadata_policy({"spec": {"rules": [rule_manifest]}}).rules[0]


def _json_column(text: str | None) -> Any:
    return None if text is None else json.loads(text)
