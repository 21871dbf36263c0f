"""The permissions that the portal needs in a cluster: one table, granted and tested alike.

What only the quotas of one cluster call for is added by ``counting``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from engine.metadata_policy import API_VERSION

if TYPE_CHECKING:
    from collections.abc import Iterable

POLICY_GROUP: Final = API_VERSION.partition("/")[0]
POLICY_CRD: Final = f"metadatapolicies.{POLICY_GROUP}"
CONFIGURATION: Final = "gatehouse"
"""The name of both webhook configurations."""


CANARY_NAMESPACE: Final = "gatehouse-canary"
"""Where canaries are tried: the one namespace in which the portal may create pods."""

_LIST: Final = ("list",)
_READ: Final = ("get", "list", "watch")
_WRITE: Final = (*_READ, "create", "update", "patch", "delete")


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """Some verbs on one resource: in all namespaces or in one, on all objects or on some.

    ``is_essential``: without it there is no sync at all.
    """

    group: str
    resource: str
    verbs: tuple[str, ...]
    names: tuple[str, ...] = ()
    namespace: str = ""
    is_essential: bool = False

    def describe(self, verbs: Iterable[str], name: str = "") -> str:
        """Say some of it in words, such as ``get, patch resourcequotas``."""
        resource = f"{self.resource}.{self.group}" if self.group else self.resource
        where = f" in namespace {self.namespace}" if self.namespace else ""
        return f"{', '.join(verbs)} {resource}{f' {name}' if name else ''}{where}"


GRANTS: Final = (
    Grant(group="", resource="namespaces", verbs=_READ, is_essential=True),
    Grant(group="", resource="limitranges", verbs=_WRITE, is_essential=True),
    Grant(group="", resource="resourcequotas", verbs=_WRITE, is_essential=True),
    Grant(group=POLICY_GROUP, resource="metadatapolicies", verbs=_WRITE, is_essential=True),
    Grant(group="scheduling.k8s.io", resource="priorityclasses", verbs=_READ, is_essential=True),
    Grant(group="", resource="pods", verbs=_LIST),
    Grant(group="", resource="persistentvolumeclaims", verbs=_LIST),
    Grant(group="", resource="services", verbs=_LIST),
    Grant(
        group="apiextensions.k8s.io",
        resource="customresourcedefinitions",
        verbs=("get",),
        names=(POLICY_CRD,),
    ),
    *(
        Grant(
            group="admissionregistration.k8s.io",
            resource=f"{phase}webhookconfigurations",
            verbs=("get",),
            names=(CONFIGURATION,),
        )
        for phase in ("mutating", "validating")
    ),
    Grant(group="", resource="pods", verbs=("create",), namespace=CANARY_NAMESPACE),
)
ESSENTIAL_VERBS: Final = frozenset(_READ)
"""The verbs of essential grants without which nothing can be read, as opposed to written."""
