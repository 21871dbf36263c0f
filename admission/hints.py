"""``announce`` the write of a policy or namespace that a review lets pass, so that others wait.

A hint refuses, charges and records nothing: the write itself is seen in the cluster, or it is not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from admission import metrics
from engine.request import Operation
from policies.snapshot import announcements

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from engine.request import AdmissionRequest

NAMESPACES: Final = "namespaces"
_POLICY_PARTS: Final = ("labels", "annotations")
_KINDS: Final[dict[tuple[str, str], tuple[str, ...]]] = {
    ("", NAMESPACES): ("labels",),  # annotations change often, and select nothing
    ("", "limitranges"): _POLICY_PARTS,
    ("", "resourcequotas"): _POLICY_PARTS,
    ("policy.gatehouse.dev", "metadatapolicies"): _POLICY_PARTS,
}
"""By group and resource: the metadata that matters beside ``spec``."""


def is_announced(request: AdmissionRequest) -> bool:
    """Whether a request writes a policy or a namespace; a dry run writes nothing."""
    resource = request.resource
    is_of_kind = (resource.group, resource.resource) in _KINDS
    return is_of_kind and not request.sub_resource and not request.dry_run


def announce(request: AdmissionRequest, cluster_id: int) -> bool:
    """Announce a request for which ``is_announced``, unless it changes nothing; count it.

    Returns whether somebody will see it arrive. Raises DatabaseError.
    """
    return ask_to_announce(request, cluster_id)()


def ask_to_announce(request: AdmissionRequest, cluster_id: int) -> Callable[[], bool]:
    """Send the statement of ``announce``; the result waits for its answer."""
    if not _changes(request):
        metrics.HINTS.labels(outcome="no-change").inc()
        return lambda: False
    is_create = request.operation is Operation.CREATE
    metadata = _part(request.object if is_create else request.old_object, "metadata")
    # The object's own name: a request that deletes a collection names none.
    name = _text(metadata, "name") or request.name
    is_namespace = request.resource.resource == NAMESPACES
    stored = announcements.ask_to_announce(
        cluster_id,
        kind=request.kind.kind,
        namespace=name if is_namespace else request.namespace,
        name=name,
        operation=request.operation.value,
        object_uid=_text(metadata, "uid"),
        resource_version="" if is_create else _text(metadata, "resourceVersion"),
    )

    def is_stored() -> bool:
        is_seen = stored()
        metrics.HINTS.labels(outcome="announced" if is_seen else "no-follower").inc()
        return is_seen

    return is_stored


def _changes(request: AdmissionRequest) -> bool:
    """Whether a policy may be another one afterwards: the cluster shows no write without a change.

    An object that is being deleted already is gone for us.
    """
    if request.operation is Operation.CREATE:
        return True
    if request.operation is Operation.DELETE:
        return not request.is_being_deleted
    if request.operation is not Operation.UPDATE:
        return False
    new, old = request.object or {}, request.old_object or {}
    if new.get("spec") != old.get("spec"):
        return True
    new_metadata, old_metadata = _part(new, "metadata"), _part(old, "metadata")
    parts = _KINDS[request.resource.group, request.resource.resource]
    return any((new_metadata.get(part) or {}) != (old_metadata.get(part) or {}) for part in parts)


def _part(obj: Mapping[str, Any] | None, name: str) -> Mapping[str, Any]:
    part = (obj or {}).get(name)
    return part if isinstance(part, dict) else {}


def _text(metadata: Mapping[str, Any], name: str) -> str:
    text = metadata.get(name)
    return text if type(text) is str else ""  # not isinstance: a RawNumber is a str, too
