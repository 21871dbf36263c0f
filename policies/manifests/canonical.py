"""The canonical field order of manifests, so that equal objects have equal text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from policies.manifests.objects import ADMISSION_VERSIONS, API_VERSIONS, PLUGIN
from policies.manifests.schema import KINDS, QUOTA_CONFIGURATION
from policies.manifests.yaml.emitter import render_documents

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from policies.manifests.schema import Shape

_ORDER = {kind: position for position, kind in enumerate(API_VERSIONS)}


def render_manifests(manifests: Iterable[Mapping[str, Any]]) -> str:
    """Write manifests as one YAML text: kinds in their order, then namespaces, then names."""
    return render_documents(canonical(one) for one in sorted(manifests, key=_place))


def canonical(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Order the fields: known ones as they are documented, keys of maps by their bytes."""
    ordered: dict[str, Any] = _ordered(manifest, KINDS[manifest["kind"]])
    return ordered


def admission_configuration(entries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Write limited resources as the file that an API server reads at its start."""
    version = ADMISSION_VERSIONS[0]
    configuration = {
        "apiVersion": version,
        "kind": "ResourceQuotaConfiguration",
        "limitedResources": list(entries),
    }
    return {
        "apiVersion": version,
        "kind": "AdmissionConfiguration",
        "plugins": [
            {"name": PLUGIN, "configuration": _ordered(configuration, QUOTA_CONFIGURATION)}
        ],
    }


def _place(manifest: Mapping[str, Any]) -> tuple[int, str, str]:
    metadata = manifest["metadata"]
    return _ORDER[manifest["kind"]], metadata.get("namespace", ""), metadata["name"]


def _ordered(value: Any, shape: Shape) -> Any:
    """Follow the shape, which is as deep as the kinds are and no deeper."""
    if isinstance(value, dict) and shape.fields is not None:
        known = shape.fields
        return {name: _ordered(value[name], known[name]) for name in known if name in value}
    if isinstance(value, dict) and shape.values is not None:
        return {name: value[name] for name in sorted(value)}
    if isinstance(value, list) and shape.entries is not None:
        return [_ordered(entry, shape.entries) for entry in value]
    return value
