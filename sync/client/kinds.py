"""The kinds that the client reads and writes: their paths on the API server and in the library."""

from __future__ import annotations

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
from sync.errors import InvalidError

if TYPE_CHECKING:
    from collections.abc import Mapping

_GROUP, _VERSION = POLICY_VERSION.split("/")


@dataclass(frozen=True, slots=True)
class ClientKind:
    """One kind; ``model`` is the library's class, of which only the address is used."""

    kind: str
    model: Any
    is_namespaced: bool

    @property
    def api_version(self) -> str:
        """As manifests say it, ``v1`` or ``group/version``."""
        return str(resource.api_info(self.model).resource.api_version)

    @property
    def group(self) -> str:
        """The API group, empty for the core's."""
        return str(resource.api_info(self.model).resource.group)

    @property
    def plural(self) -> str:
        """What permissions and addresses call it."""
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
    rbac_authorization_v1.ClusterRole,
    rbac_authorization_v1.ClusterRoleBinding,
    rbac_authorization_v1.Role,
    rbac_authorization_v1.RoleBinding,
    authorization_v1.SelfSubjectAccessReview,
)


def _kind(model: Any) -> ClientKind:
    name = resource.api_info(model).resource.kind
    return ClientKind(name, model, issubclass(model, resource.NamespacedResource))


KINDS: Final[Mapping[str, ClientKind]] = {one.kind: one for one in map(_kind, _MODELS)}
"""All of them, by their name in manifests."""


METADATA: Final = "PartialObjectMetadata"
"""The kind as which any object comes whose contents were not asked for."""


def kind_at(group: str, version: str, plural: str, *, kind: str = METADATA) -> ClientKind:
    """Name a kind that lives in namespaces and that the library does not know.

    Of ``METADATA`` there are lists alone.
    """
    found = {"_api_info": create_api_info(group, version, kind, plural)}
    return ClientKind(kind, type(kind, (GenericNamespacedResource,), found), is_namespaced=True)


def kind_of(name: str) -> ClientKind:
    """Look a kind up; raises InvalidError for one that is never asked for."""
    if name not in KINDS:
        raise InvalidError(f"no kind {name!r} is synced", reason="UnknownKind")
    return KINDS[name]
