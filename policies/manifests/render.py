"""YAML written in canonical field order: indents, blocks, scalars quoted; AdmissionConfiguration.

Neither of the well-known dumpers quotes all of ``y``, ``no``, ``0o17``, ``1e3`` and ``08``, and
kubectl, which reads YAML 1.1, then sees booleans and numbers. Hence an emitter of our own.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from engine.wire import RawNumber
from policies.manifests.objects import ADMISSION_VERSIONS, API_VERSIONS, FLEET_KINDS, PLUGIN
from policies.manifests.schema import KINDS, QUOTA_CONFIGURATION
from policies.manifests.yaml.scalars import is_plainly_safe

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from policies.manifests.schema import Shape


_KIND_ORDER = {kind: position for position, kind in enumerate((*API_VERSIONS, *FLEET_KINDS))}


def render_manifests(manifests: Iterable[Mapping[str, Any]]) -> str:
    """Manifests as one YAML text, sorted by kind, namespace and name."""
    return render_documents(canonical(one) for one in sorted(manifests, key=_sort_key))


def canonical(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Order the fields as documented, and the keys of maps by their bytes."""
    ordered: dict[str, Any] = _in_field_order(manifest, KINDS[manifest["kind"]])
    spec = ordered.get("spec")
    if manifest["kind"] in FLEET_KINDS and isinstance(spec, dict) and spec.get("policies"):
        # An editor writes what is not valid yet: a policy of an unknown kind stays as it is.
        policies = [
            canonical(each) if each.get("kind") in KINDS else each for each in spec["policies"]
        ]
        ordered["spec"] = {**spec, "policies": policies}
    return ordered


def admission_configuration(entries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Limited resources as the configuration file that an API server reads at its start."""
    admission_version = ADMISSION_VERSIONS[0]
    configuration = {
        "apiVersion": admission_version,
        "kind": "ResourceQuotaConfiguration",
        "limitedResources": list(entries),
    }
    return {
        "apiVersion": admission_version,
        "kind": "AdmissionConfiguration",
        "plugins": [
            {"name": PLUGIN, "configuration": _in_field_order(configuration, QUOTA_CONFIGURATION)}
        ],
    }


def _sort_key(manifest: Mapping[str, Any]) -> tuple[int, str, str]:
    sort_metadata = manifest["metadata"]
    return _KIND_ORDER[manifest["kind"]], sort_metadata.get("namespace", ""), sort_metadata["name"]


def _in_field_order(value: Any, shape: Shape) -> Any:
    """Order by the shape; it recurses no deeper than the kinds."""
    if isinstance(value, dict) and shape.fields is not None:
        known = shape.fields
        return {name: _in_field_order(value[name], known[name]) for name in known if name in value}
    if isinstance(value, dict) and shape.values is not None:
        return {name: value[name] for name in sorted(value)}
    if isinstance(value, list) and shape.entries is not None:
        return [_in_field_order(entry, shape.entries) for entry in value]
    return value


def render_documents(manifests: Iterable[dict[str, Any]]) -> str:
    """Manifests as a YAML text of several documents, in the given order."""
    return "---\n".join("".join(f"{line}\n" for line in _yaml_lines(m, 0)) for m in manifests)


def _yaml_lines(block: Any, depth: int) -> Iterator[str]:
    indent = "  " * depth
    if isinstance(block, dict):
        for key, item in block.items():
            yaml_key = f"{indent}{_yaml_scalar(key)}:"
            if _is_block(item):
                yield yaml_key
                # Lists of a field stand at its own depth, as kubectl writes them.
                yield from _yaml_lines(item, depth if isinstance(item, list) else depth + 1)
            else:
                yield f"{yaml_key} {_yaml_scalar(item)}"
        return
    for item in block:
        if _is_block(item):
            first_line, *other_lines = _yaml_lines(item, depth + 1)
            yield f"{indent}- {first_line.lstrip(' ')}"
            yield from other_lines
        else:
            yield f"{indent}- {_yaml_scalar(item)}"


def _is_block(item: Any) -> bool:
    return isinstance(item, dict | list) and bool(item)


_UNPRINTABLE = re.compile(
    "[^\\x20-\\x7e\\xa0-\\u2027\\u202a-\\ud7ff\\ue000-\\ufefe\\uff00-\\ufffd]"
)


def _yaml_scalar(scalar: Any) -> str:
    if isinstance(scalar, RawNumber):
        return str(scalar)
    if not isinstance(scalar, str):
        return json.dumps(scalar)
    if is_plainly_safe(scalar):
        return scalar
    # Double-quoted. JSON's escapes are YAML's, too, except for characters beyond 16 bits.
    return _UNPRINTABLE.sub(_escape_character, json.dumps(scalar, ensure_ascii=False))


def _escape_character(match: re.Match[str]) -> str:
    code_point = ord(match[0])
    return f"\\u{code_point:04x}" if code_point <= 0xFFFF else f"\\U{code_point:08x}"  # noqa: PLR2004  16 bits
