"""``normal`` form of a policy's manifest: quantities by value, defaults set, scopes sorted.

Equal amounts have equal texts. Fields that only servers and clients write are left out: status,
uid, versions, managed fields, kubectl's annotations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from engine.errors import DecodeError
from engine.limit_range import decode_limit_range, encode_limit_range
from engine.metadata_policy import (
    API_VERSION,
    decode_metadata_policy,
    encode_metadata_policy,
)
from engine.policy import (
    ENFORCEMENT_ANNOTATION,
    IN_API_SERVER_ANNOTATION,
    Enforcement,
    InAPIServer,
)
from engine.quantity import BINARY_SI, DECIMAL_SI, Quantity, QuantityError
from engine.resource_quota import decode_resource_quota, encode_resource_quota

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Manifest = Mapping[str, Any]


_CLIENTS_OWN: Final = "kubectl.kubernetes.io/"
_DEFAULT_MODES: Final = (
    (ENFORCEMENT_ANNOTATION, Enforcement.ENFORCE.value),
    (IN_API_SERVER_ANNOTATION, InAPIServer.OFF.value),
)
_MEBI: Final = 1024 * 1024 * 10**9
"""In nanos; whole multiples of it are memory and get a binary suffix."""


def normal(manifest: Manifest) -> dict[str, Any]:
    """The normal form of a manifest; a spec that the engine cannot read stays as it is.

    Never raises for a manifest whose ``metadata`` is a map; ``normal(normal(m)) == normal(m)``.
    """
    kind = manifest.get("kind", "")
    encode_spec = _SPEC_OF_KIND.get(kind)
    try:
        normal_spec = encode_spec(manifest) if encode_spec else manifest.get("spec")
    except (DecodeError, QuantityError):
        normal_spec = manifest.get("spec")
    normal_form = {
        "apiVersion": _VERSIONS.get(kind, manifest.get("apiVersion", "")),
        "kind": kind,
        "metadata": _normal_metadata(manifest.get("metadata") or {}),
    }
    return normal_form if normal_spec is None else {**normal_form, "spec": normal_spec}


def _normal_metadata(metadata: Manifest) -> dict[str, Any]:
    normal_form = {key: metadata[key] for key in ("name", "namespace") if metadata.get(key)}
    annotations = {
        key: text
        for key, text in (metadata.get("annotations") or {}).items()
        if not key.startswith(_CLIENTS_OWN) and (key, text) not in _DEFAULT_MODES
    }
    text_maps = {"labels": dict(metadata.get("labels") or {}), "annotations": annotations}
    return {**normal_form, **{name: texts for name, texts in text_maps.items() if texts}}


def _limit_range(manifest: Manifest) -> Any:
    range_spec = encode_limit_range(decode_limit_range(manifest))["spec"]
    return {
        "limits": [
            {key: _amounts_by_value(item[key]) if key != "type" else item[key] for key in item}
            for item in range_spec["limits"]
        ]
    }


def _resource_quota(manifest: Manifest) -> Any:
    plain_quota = {key: manifest[key] for key in manifest if key not in ("status", "metadata")}
    quota_spec = encode_resource_quota(decode_resource_quota(plain_quota))["spec"]
    quota_form = {**quota_spec, "hard": _amounts_by_value(quota_spec["hard"])}
    # Scopes, expressions and their values are sets: their order means nothing.
    if "scopes" in quota_spec:
        quota_form["scopes"] = sorted(set(quota_spec["scopes"]))
    if "scopeSelector" in quota_spec:
        expressions = [
            {
                **expression,
                **({"values": sorted(set(expression["values"]))} if "values" in expression else {}),
            }
            for expression in quota_spec["scopeSelector"]["matchExpressions"]
        ]
        expressions.sort(
            key=lambda expression: (
                expression["scopeName"],
                expression["operator"],
                expression.get("values", []),
            )
        )
        quota_form["scopeSelector"] = {"matchExpressions": expressions}
    return quota_form


def _metadata_policy(manifest: Manifest) -> Any:
    plain_policy = {"spec": manifest.get("spec")}
    return encode_metadata_policy(decode_metadata_policy(plain_policy))["spec"]


def _amounts_by_value(amounts: Mapping[str, str]) -> dict[str, str]:
    """Write equal amounts as equal texts, whatever their suffixes were."""
    amounts_form = {}
    for name, text in sorted(amounts.items()):
        nano = Quantity.parse(text).nano
        is_memory = nano != 0 and nano % _MEBI == 0
        amounts_form[name] = Quantity(nano, BINARY_SI if is_memory else DECIMAL_SI).canonical()
    return amounts_form


_SPEC_OF_KIND: Final[Mapping[str, Callable[[Manifest], Any]]] = {
    "LimitRange": _limit_range,
    "ResourceQuota": _resource_quota,
    "MetadataPolicy": _metadata_policy,
}
_VERSIONS: Final = {"LimitRange": "v1", "ResourceQuota": "v1", "MetadataPolicy": API_VERSION}
