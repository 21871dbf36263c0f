"""Decode and encode a ResourceQuota manifest: hard, status, scopes, scopeSelector's expressions.

Source: ``k8s.io/api/core/v1/types.go`` and ``pkg/apis/core/v1/defaults.go``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from engine.errors import DecodeError
from engine.fields import (
    expect_map,
    expect_objects,
    expect_resource_list,
    expect_string,
    expect_string_map,
    expect_strings,
)
from engine.policy import ResourceQuota, decode_enforcement, encode_enforcement
from engine.quantity import ZERO
from engine.resource_list import round_up, stored, to_json
from engine.resource_quota.evaluators import is_tracked
from engine.selector import ScopeSelectorRequirement
from engine.wire import json_type

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.quantity import Quantity
    from engine.resource_list import ResourceList

_KIND: Final = "ResourceQuota"
_SCOPE: Final = "ScopedResourceSelectorRequirement"
_GO_SCOPE: Final = "v1.ResourceQuotaScope"
_GO_SCOPES: Final = f"{_KIND}Spec.spec.scopes of type []{_GO_SCOPE}"


def decode_resource_quota(manifest: object) -> ResourceQuota:
    """Decode a manifest as the API server does, quantities rounded up to thousandths.

    If ``status`` has ``hard`` or ``used``, these are enforced, even if empty (not computed yet);
    otherwise ``hard`` is ``spec.hard`` and nothing is used. Raises DecodeError.
    """
    if not isinstance(manifest, dict):
        found = json_type(manifest)
        raise DecodeError("", f"json: cannot unmarshal {found} into Go value of type v1.{_KIND}")
    metadata = expect_map(
        manifest.get("metadata"), "metadata", f"{_KIND}.metadata of type v1.ObjectMeta"
    )
    _read_meta_map(metadata, "labels")
    annotations = _read_meta_map(metadata, "annotations")
    spec = expect_map(manifest.get("spec"), "spec", f"{_KIND}.spec of type v1.{_KIND}Spec")
    spec_hard = _read_amounts(spec, "hard", "spec")
    hard, used = _read_status(manifest, spec_hard)
    return ResourceQuota(
        name=_read_meta_text(metadata, "name"),
        namespace=_read_meta_text(metadata, "namespace"),
        spec_hard=spec_hard,
        hard=hard,
        used=used,
        scopes=expect_strings(spec.get("scopes"), "spec.scopes", _GO_SCOPES),
        scope_selector=_read_selector(spec),
        enforcement=decode_enforcement(annotations),
    )


def _read_meta_text(metadata: Mapping[str, Any], key: str) -> str:
    path = f"metadata.{key}"
    return expect_string(metadata.get(key), path, f"ObjectMeta.{path} of type string")


def _read_meta_map(metadata: Mapping[str, Any], key: str) -> dict[str, str]:
    path = f"metadata.{key}"
    return expect_string_map(
        metadata.get(key), path, f"ObjectMeta.{path} of type map[string]string"
    )


def _read_amounts(parent: Mapping[str, Any], key: str, path: str) -> dict[str, Quantity]:
    go_field = f"{_KIND}{path.capitalize()}.{path}.{key}"
    return round_up(expect_resource_list(parent.get(key), f"{path}.{key}", go_field))


def _read_status(
    manifest: Mapping[str, Any], spec_hard: ResourceList
) -> tuple[ResourceList, ResourceList]:
    """Read enforced and used amounts from the status, or compute those of an unused quota.

    Both are as read back from storage, which keeps only texts: ``2929687.5Ki`` counts as ``3G``.
    """
    status = expect_map(
        manifest.get("status"), "status", f"{_KIND}.status of type v1.{_KIND}Status"
    )
    if status.get("hard") is None and status.get("used") is None:
        return stored(spec_hard), {name: ZERO for name in spec_hard if is_tracked(name)}
    hard, used = (_read_amounts(status, key, "status") for key in ("hard", "used"))
    return stored(hard), stored(used)


def _read_selector(spec: Mapping[str, Any]) -> tuple[ScopeSelectorRequirement, ...] | None:
    if spec.get("scopeSelector") is None:
        return None
    at = "spec.scopeSelector"
    selector = expect_map(
        spec.get("scopeSelector"), at, f"{_KIND}Spec.{at} of type v1.ScopeSelector"
    )
    path = f"{at}.matchExpressions"
    expressions = expect_objects(
        selector.get("matchExpressions"), path, f"ScopeSelector.{path}", f"v1.{_SCOPE}"
    )
    return tuple(decode_scope(raw, f"{path}[{i}]", path) for i, raw in enumerate(expressions))


def decode_scope(scope: Mapping[str, Any], path: str, go_path: str) -> ScopeSelectorRequirement:
    """Decode one scope requirement; ``go_path`` is its path in Go. Raises DecodeError."""
    struct = f"{_SCOPE}.{go_path}"
    return ScopeSelectorRequirement(
        expect_string(
            scope.get("scopeName"), f"{path}.scopeName", f"{struct}.scopeName of type {_GO_SCOPE}"
        ),
        expect_string(
            scope.get("operator"),
            f"{path}.operator",
            f"{struct}.operator of type v1.ScopeSelectorOperator",
        ),
        expect_strings(scope.get("values"), f"{path}.values", f"{struct}.values of type []string"),
        scope.get("values") is not None,
    )


def encode_scope(requirement: ScopeSelectorRequirement) -> dict[str, Any]:
    """Encode one scope requirement, without values where there are none."""
    expression: dict[str, Any] = {
        "scopeName": requirement.scope_name,
        "operator": requirement.operator,
    }
    if requirement.values:
        expression["values"] = list(requirement.values)
    return expression


def encode_resource_quota(quota: ResourceQuota) -> dict[str, Any]:
    """Encode the manifest of ``spec``; the status belongs to the cluster."""
    metadata: dict[str, Any] = {"name": quota.name}
    if quota.namespace:
        metadata["namespace"] = quota.namespace
    if annotations := encode_enforcement(quota.enforcement):
        metadata["annotations"] = annotations
    spec: dict[str, Any] = {"hard": to_json(quota.spec_hard)}
    if quota.scopes:
        spec["scopes"] = list(quota.scopes)
    if quota.scope_selector is not None:
        expressions = [encode_scope(requirement) for requirement in quota.scope_selector]
        spec["scopeSelector"] = {"matchExpressions": expressions}
    return {"apiVersion": "v1", "kind": _KIND, "metadata": metadata, "spec": spec}
