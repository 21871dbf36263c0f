"""ClientKind of each library model; other resources discovered; lists of names alone."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from lightkube.core import resource
from lightkube.generic_resource import (
    GenericNamespacedResource,
    create_api_info,
    create_namespaced_resource,
)
from lightkube.resources import (
    admissionregistration_v1,
    apiextensions_v1,
    authorization_v1,
    core_v1,
    rbac_authorization_v1,
    scheduling_v1,
)

from engine.metadata_policy import API_VERSION as POLICY_VERSION
from sync.client.answers import is_kubernetes_name
from sync.errors import GarbageError, InvalidError, NotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from sync.values import Listing

    Read = Callable[[str], dict[str, Any]]


_GROUP, _VERSION = POLICY_VERSION.split("/")


@dataclass(frozen=True, slots=True)
class ClientKind:
    """One kind; ``model`` is the library's class, used for its API path alone."""

    kind: str
    model: Any
    is_namespaced: bool

    @property
    def api_version(self) -> str:
        """As in manifests: ``v1`` or ``group/version``."""
        return str(resource.api_info(self.model).resource.api_version)

    @property
    def group(self) -> str:
        """The API group, empty for the core group."""
        return str(resource.api_info(self.model).resource.group)

    @property
    def plural(self) -> str:
        """The name in permissions and API paths."""
        return str(resource.api_info(self.model).plural)


_MODELS: Final = (
    core_v1.Namespace,
    core_v1.LimitRange,
    core_v1.ResourceQuota,
    create_namespaced_resource(_GROUP, _VERSION, "MetadataPolicy", "metadatapolicies"),
    scheduling_v1.PriorityClass,
    core_v1.Pod,
    core_v1.PersistentVolumeClaim,
    core_v1.Service,
    core_v1.ReplicationController,
    core_v1.Secret,
    core_v1.ConfigMap,
    core_v1.ServiceAccount,
    apiextensions_v1.CustomResourceDefinition,
    admissionregistration_v1.MutatingWebhookConfiguration,
    admissionregistration_v1.ValidatingWebhookConfiguration,
    admissionregistration_v1.ValidatingAdmissionPolicy,
    admissionregistration_v1.ValidatingAdmissionPolicyBinding,
    admissionregistration_v1.MutatingAdmissionPolicy,
    admissionregistration_v1.MutatingAdmissionPolicyBinding,
    rbac_authorization_v1.ClusterRole,
    rbac_authorization_v1.ClusterRoleBinding,
    rbac_authorization_v1.Role,
    rbac_authorization_v1.RoleBinding,
    authorization_v1.SelfSubjectAccessReview,
)


def _client_kind(model: Any) -> ClientKind:
    name = resource.api_info(model).resource.kind
    return ClientKind(name, model, issubclass(model, resource.NamespacedResource))


KINDS: Final[Mapping[str, ClientKind]] = {one.kind: one for one in map(_client_kind, _MODELS)}
"""All kinds of the library that the client uses, by their name in manifests."""
_STATUS_MODELS: Final = {"ResourceQuota": core_v1.ResourceQuotaStatus}
METADATA: Final = "PartialObjectMetadata"
"""The kind of every object in a list without contents."""
_KEPT_METADATA: Final = ("name", "namespace", "uid", "resourceVersion")


def kind_at(group: str, version: str, plural: str, *, kind: str = METADATA) -> ClientKind:
    """Make a namespaced kind that the library does not know.

    ``METADATA`` can only be listed.
    """
    found = {"_api_info": create_api_info(group, version, kind, plural)}
    return ClientKind(kind, type(kind, (GenericNamespacedResource,), found), is_namespaced=True)


def kind_of(name: str) -> ClientKind:
    """Look a kind up; raises InvalidError for one that the client does not use."""
    if name not in KINDS:
        raise InvalidError(f"no kind {name!r} is synced", reason="UnknownKind")
    return KINDS[name]


def status_kind_of(name: str) -> ClientKind:
    """Look up the status of a kind; raises InvalidError for one whose status is never written."""
    if name not in _STATUS_MODELS:
        raise InvalidError(f"no status of kind {name!r} is written", reason="UnknownKind")
    return ClientKind(name, _STATUS_MODELS[name], is_namespaced=True)


def find_resource(read: Read, group: str, resource: str) -> tuple[str, str]:
    """Find version and kind of a namespaced resource that can be listed.

    ``read`` reads one path. The preferred version comes first. Raises NotFoundError if no version
    serves the resource, and whatever ``read`` raises.
    """
    if not is_kubernetes_name(resource) or (group and not is_kubernetes_name(group)):
        raise InvalidError(f"{resource}.{group} cannot be a resource")
    for version in _group_versions(read, group):
        group_path = f"apis/{group}/{version}" if group else f"api/{version}"
        served_resources = read(group_path).get("resources")
        if not isinstance(served_resources, list):
            raise GarbageError(f"no resources at {group_path}")
        for entry in served_resources:
            if isinstance(entry, dict) and entry.get("name") == resource and _can_be_listed(entry):
                return version, str(entry["kind"])
    full_name = f"{resource}.{group}" if group else resource
    raise NotFoundError(f"no {full_name} in namespaces here", code=404, reason="NotServed")


def names_alone(listing: Listing) -> Listing:
    """Drop all metadata but names, uids and versions."""
    # The annotation of ``kubectl apply`` repeats the object, the contents of a Secret included.
    named_items = tuple(
        {**item, "metadata": {name: item["metadata"].get(name, "") for name in _KEPT_METADATA}}
        for item in listing.items
    )
    return dataclasses.replace(listing, items=named_items)


def _group_versions(read: Read, group: str) -> Iterator[str]:
    if not group:
        yield "v1"
        return
    api_group = read(f"apis/{group}")
    preferred_version = api_group.get("preferredVersion")
    version_entries = [preferred_version, *(api_group.get("versions") or [])]
    version_names = [entry.get("version") for entry in version_entries if isinstance(entry, dict)]
    for version_name in dict.fromkeys(version_names):
        if not is_kubernetes_name(version_name):
            raise GarbageError(f"no versions of {group}")
        yield str(version_name)


def _can_be_listed(found: dict[str, Any]) -> bool:
    verbs, kind = found.get("verbs"), found.get("kind")
    is_listed = isinstance(verbs, list) and "list" in verbs
    return is_listed and found.get("namespaced") is True and isinstance(kind, str) and bool(kind)
