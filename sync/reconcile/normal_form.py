"""The normal form of manifests, equal exactly if they mean the same, and their field managers.

Defaults and names are the engine's; amounts are written by their value alone. What only servers
and clients write is left out: status, uid, versions, managed fields, kubectl's annotations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from engine.errors import DecodeError
from engine.limit_range import decode_limit_range, encode_limit_range
from engine.metadata_policy import (
    API_VERSION,
    decode_metadata_policy,
    encode_metadata_policy,
)
from engine.policy import ENFORCEMENT_ANNOTATION, Enforcement
from engine.quantity import BINARY_SI, DECIMAL_SI, Quantity, QuantityError
from engine.resource_quota import decode_resource_quota, encode_resource_quota

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    Manifest = Mapping[str, Any]


_CLIENTS_OWN: Final = "kubectl.kubernetes.io/"
_MEBI: Final = 1024 * 1024 * 10**9
"""In nanos: whole multiples are memory, and read best with a binary suffix."""


def normal(manifest: Manifest) -> dict[str, Any]:
    """Give the normal form; a spec that the engine cannot read stays as it is.

    Never raises for a manifest whose ``metadata`` is a map; ``normal(normal(m)) == normal(m)``.
    """
    kind = manifest.get("kind", "")
    encode = _SPECS.get(kind)
    try:
        spec = encode(manifest) if encode else manifest.get("spec")
    except (DecodeError, QuantityError):
        spec = manifest.get("spec")
    form = {
        "apiVersion": _VERSIONS.get(kind, manifest.get("apiVersion", "")),
        "kind": kind,
        "metadata": _metadata(manifest.get("metadata") or {}),
    }
    return form if spec is None else {**form, "spec": spec}


def _metadata(metadata: Manifest) -> dict[str, Any]:
    form = {key: metadata[key] for key in ("name", "namespace") if metadata.get(key)}
    annotations = {
        key: text
        for key, text in (metadata.get("annotations") or {}).items()
        if not key.startswith(_CLIENTS_OWN)
        and (key, text) != (ENFORCEMENT_ANNOTATION, Enforcement.ENFORCE.value)
    }
    maps = {"labels": dict(metadata.get("labels") or {}), "annotations": annotations}
    return {**form, **{name: texts for name, texts in maps.items() if texts}}


def _limit_range(manifest: Manifest) -> Any:
    spec = encode_limit_range(decode_limit_range(manifest))["spec"]
    return {"limits": [_amounts_of(item) for item in spec["limits"]]}


def _amounts_of(item: Manifest) -> dict[str, Any]:
    return {key: _by_value(item[key]) if key != "type" else item[key] for key in item}


def _resource_quota(manifest: Manifest) -> Any:
    """A quota's spec; its scopes and their values are sets."""
    plain = {key: manifest[key] for key in manifest if key not in ("status", "metadata")}
    spec = encode_resource_quota(decode_resource_quota(plain))["spec"]
    form = {**spec, "hard": _by_value(spec["hard"])}
    if "scopes" in spec:
        form["scopes"] = sorted(set(spec["scopes"]))
    if "scopeSelector" in spec:
        expressions = [_sorted_values(one) for one in spec["scopeSelector"]["matchExpressions"]]
        form["scopeSelector"] = {"matchExpressions": sorted(expressions, key=_place)}
    return form


def _sorted_values(expression: Manifest) -> dict[str, Any]:
    form = dict(expression)
    if "values" in form:
        form["values"] = sorted(set(form["values"]))
    return form


def _place(expression: Manifest) -> tuple[str, str, list[str]]:
    return expression["scopeName"], expression["operator"], expression.get("values", [])


def _metadata_policy(manifest: Manifest) -> Any:
    plain = {"spec": manifest.get("spec")}
    return encode_metadata_policy(decode_metadata_policy(plain))["spec"]


def _by_value(amounts: Mapping[str, str]) -> dict[str, str]:
    """Write amounts so that equal ones have equal texts, whatever their suffixes were."""
    return {name: _canonical(Quantity.parse(text).nano) for name, text in sorted(amounts.items())}


def _canonical(nano: int) -> str:
    is_memory = nano != 0 and nano % _MEBI == 0
    return Quantity(nano, BINARY_SI if is_memory else DECIMAL_SI).canonical()


_SPECS: Final[Mapping[str, Callable[[Manifest], Any]]] = {
    "LimitRange": _limit_range,
    "ResourceQuota": _resource_quota,
    "MetadataPolicy": _metadata_policy,
}
_VERSIONS: Final = {"LimitRange": "v1", "ResourceQuota": "v1", "MetadataPolicy": API_VERSION}


_MOST_FIELDS: Final = 20_000
_KINDS: Final = {"f": ".{}", "k": "[{}]", "v": "[={}]", "i": "[{}]"}


class Manager(NamedTuple):
    """A program's name for itself, and its last write (RFC 3339 text), as far as noted."""

    manager: str
    time: str


def managers(live: Mapping[str, Any]) -> dict[str, Manager]:
    """By field, who wrote it last; status is nobody's business.

    Fields are named as in Difference; what is owned as a whole (``.spec.limits``) stands alone.
    """
    found: dict[str, Manager] = {}
    for entry in _entries(live):
        who = Manager(_text(entry.get("manager")), _text(entry.get("time")))
        for field in _fields(entry.get("fieldsV1")):
            if field not in found or found[field].time <= who.time:
                found[field] = who
    return found


def _entries(live: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    noted = (live.get("metadata") or {}).get("managedFields")
    entries = noted if isinstance(noted, list) else []
    return [one for one in entries if isinstance(one, dict) and not one.get("subresource")]


def _fields(tree: Any) -> Iterator[str]:
    """Walk the tree of one manager; a field is owned that has nothing below it, or a dot."""
    pending: list[tuple[str, Any]] = [("", tree)]
    for _ in range(_MOST_FIELDS):
        if not pending:
            return
        path, below = pending.pop()
        inner = below if isinstance(below, dict) else {}
        if path and (not inner or "." in inner):
            yield path
        pending += [(path + _step(key), inner[key]) for key in inner if key != "."]


def _step(key: str) -> str:
    sort, _, name = key.partition(":")
    return _KINDS.get(sort, ".{}").format(name)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
