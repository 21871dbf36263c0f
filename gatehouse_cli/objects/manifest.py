"""The manifest of an object of the API, as ``export`` writes it and ``apply`` reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from engine.policy import (
    ENFORCEMENT_ANNOTATION,
    IN_API_SERVER_ANNOTATION,
    Enforcement,
    InAPIServer,
)
from policies.manifests.objects import API_VERSIONS, FLEET_KINDS
from policies.manifests.render import canonical
from policies.manifests.schema import KINDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gatehouse_cli.objects.kinds import Kind


_MODES: Final = {
    "enforcement": (ENFORCEMENT_ANNOTATION, Enforcement.ENFORCE.value),
    "in_api_server": (IN_API_SERVER_ANNOTATION, InAPIServer.OFF.value),
}
"""The fields beside a manifest that are annotations in it, with their defaults."""


def manifest_of(kind: Kind, shown: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest; an object of a kind without manifests is returned as it is.

    The status is left out: it belongs to the portal's ledger, and is read with ``-o json``.
    """
    if not kind.manifest_kind:
        return dict(shown)
    fields = set(KINDS[kind.manifest_kind].fields or ()) - {"status"}
    manifest = {name: value for name, value in shown.items() if name in fields}
    manifest["apiVersion"] = {**API_VERSIONS, **FLEET_KINDS}[kind.manifest_kind]
    manifest["kind"] = kind.manifest_kind
    manifest["metadata"] = _metadata(shown)
    if shown.get("phase") == "Terminating":
        manifest["status"] = {"phase": "Terminating"}
    return canonical(manifest)


def _metadata(shown: Mapping[str, Any]) -> dict[str, Any]:
    metadata = dict(shown["metadata"])
    for name, (key, default) in _MODES.items():
        mode = shown.get(name, default)
        if mode != default:
            metadata["annotations"] = {**(metadata.get("annotations") or {}), key: mode}
    return metadata
