"""Decode and encode a LimitRange manifest: spec.limits items, seed fields, default, defaultRequest.

Source: ``k8s.io/api/core/v1`` and ``pkg/apis/core/v1/defaults.go``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from engine.errors import DecodeError
from engine.fields import expect_objects, expect_resource_list, read_map, read_text
from engine.policy import LimitRange, LimitRangeItem
from engine.resource_list import round_up, stored, to_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.quantity import Quantity

CONTAINER = "Container"
POD = "Pod"
CLAIM = "PersistentVolumeClaim"

_ITEM_FIELDS = {
    "max": "max",
    "min": "min",
    "default": "default",
    "defaultRequest": "default_request",
    "maxLimitRequestRatio": "max_limit_request_ratio",
}
_SEED_FIELDS = {"defaultRequests": "defaultRequest", "limitRequestRatio": "maxLimitRequestRatio"}
_GO_SPEC = "LimitRange.spec of type v1.LimitRangeSpec"
_GO_METADATA = "LimitRange.metadata of type v1.ObjectMeta"


def decode_limit_range(manifest: Mapping[str, Any], *, seed_names: bool = True) -> LimitRange:
    """Decode a manifest as the API server does: with defaults, quantities rounded and as stored.

    ``seed_names`` accepts the design proposal's ``defaultRequests`` and ``limitRequestRatio`` as
    older names of today's fields. It is off for objects in a review, where an API server ignores
    them like any unknown field. Raises DecodeError.
    """
    meta = read_map(manifest, "metadata", "metadata", _GO_METADATA)
    spec = read_map(manifest, "spec", "spec", _GO_SPEC)
    go_field = "LimitRangeSpec.spec.limits"
    items = expect_objects(spec.get("limits"), "spec.limits", go_field, "v1.LimitRangeItem")
    return LimitRange(
        name=read_text(meta, "name", "metadata", "ObjectMeta.metadata.name of type string"),
        namespace=read_text(
            meta, "namespace", "metadata", "ObjectMeta.metadata.namespace of type string"
        ),
        items=tuple(
            _decode_item(item, f"spec.limits[{position}]", seed_names=seed_names)
            for position, item in enumerate(items)
        ),
    )


def default_item(item: LimitRangeItem) -> LimitRangeItem:
    """Fill in the defaults of a Container item, for each resource by itself.

    The default limit is the maximum; the default request is the default limit, or else the
    minimum. Items of other types are not changed.
    """
    if item.type != CONTAINER:
        return item
    default = {**item.max, **item.default}
    default_request = {**item.min, **default, **item.default_request}
    return replace(item, default=default, default_request=default_request)


def encode_limit_range(limit_range: LimitRange) -> dict[str, Any]:
    """Encode the manifest: today's field names, canonical order, no empty fields."""
    metadata = {"name": limit_range.name, "namespace": limit_range.namespace}
    limits: list[dict[str, Any]] = [{"type": item.type} for item in limit_range.items]
    for encoded, item in zip(limits, limit_range.items, strict=True):
        lists = {key: to_json(getattr(item, name)) for key, name in _ITEM_FIELDS.items()}
        encoded.update({key: texts for key, texts in lists.items() if texts})
    return {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {key: text for key, text in metadata.items() if text},
        "spec": {"limits": limits},
    }


def _decode_item(raw: Mapping[str, Any], path: str, *, seed_names: bool) -> LimitRangeItem:
    if seed_names:
        raw = _rename_seed_fields(raw, path)
    go_type = "LimitRangeItem.spec.limits.type of type v1.LimitType"
    bounds: dict[str, dict[str, Quantity]] = {}
    for key, value in raw.items():  # in document order, since Go reports the first error
        if key in _ITEM_FIELDS:
            go_field = f"LimitRangeItem.spec.limits.{key}"
            bounds[_ITEM_FIELDS[key]] = expect_resource_list(value, f"{path}.{key}", go_field)
    item = default_item(LimitRangeItem(type=read_text(raw, "type", path, go_type), **bounds))
    # Storage keeps nothing of a quantity but its text, which decoding has rounded.
    amounts = {name: stored(round_up(getattr(item, name))) for name in _ITEM_FIELDS.values()}
    return LimitRangeItem(type=item.type, **amounts)


def _rename_seed_fields(raw: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Replace the proposal's field names by today's; both at once are ambiguous and refused."""
    for seed, today in _SEED_FIELDS.items():
        if seed in raw and today in raw:
            raise DecodeError(f"{path}.{seed}", f"{seed} is an old name of {today}: give only one")
    return {_SEED_FIELDS.get(key, key): value for key, value in raw.items()}
