"""EditableKind: the editor's kinds with plural, fields, groups, show, build, blank manifest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from policies.drafts.forms import (
    limit_range,
    limited_resources,
    metadata_rules,
    namespace_class,
    priority_class,
    quota,
)
from policies.manifests import sentences
from policies.manifests.objects import ADMISSION_VERSIONS, API_VERSIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from policies.drafts.forms.sheets import Built, Sheet

CONFIGURATION: Final = "ResourceQuotaConfiguration"
_COMMON: Final = ("name", "enforcement")
_COMPILABLE: Final = (*_COMMON, "in_api_server")


@dataclass(frozen=True, slots=True, kw_only=True)
class EditableKind:
    """One kind: ``groups`` and ``fields`` are those of its form."""

    name: str
    plural: str
    fields: tuple[str, ...]
    groups: tuple[str, ...]
    show: Callable[[Mapping[str, Any]], Sheet]
    build: Callable[[Sheet, Mapping[str, Any]], Built]
    is_namespaced: bool = True

    @property
    def is_configuration(self) -> bool:
        """Whether it is the cluster's one configuration, which has no name."""
        return self.name == CONFIGURATION

    def blank(self, namespace: str = "") -> dict[str, Any]:
        """A manifest without content."""
        if self.is_configuration:
            return {"apiVersion": ADMISSION_VERSIONS[0], "kind": self.name, "limitedResources": []}
        metadata = {"name": "", **({"namespace": namespace} if self.is_namespaced else {})}
        head = {"apiVersion": API_VERSIONS[self.name], "kind": self.name, "metadata": metadata}
        return {**head, **({"spec": {}} if self.is_namespaced else {})}


LIMIT_RANGE: Final = EditableKind(
    name="LimitRange",
    plural="limitranges",
    fields=_COMPILABLE,
    groups=(limit_range.ROW,),
    show=limit_range.show,
    build=limit_range.build,
)
RESOURCE_QUOTA: Final = EditableKind(
    name="ResourceQuota",
    plural="resourcequotas",
    fields=_COMMON,
    groups=(quota.HARD, quota.SCOPE),
    show=quota.show,
    build=quota.build,
)
METADATA_POLICY: Final = EditableKind(
    name="MetadataPolicy",
    plural="metadatapolicies",
    fields=(*_COMPILABLE, *metadata_rules.FLAGS),
    groups=(sentences.RULE, sentences.IF, sentences.THEN),
    show=metadata_rules.show,
    build=metadata_rules.build,
)
PRIORITY_CLASS: Final = EditableKind(
    name="PriorityClass",
    plural="priorityclasses",
    fields=("name", *priority_class.FIELDS),
    groups=(),
    show=priority_class.show,
    build=priority_class.build,
    is_namespaced=False,
)
LIMITED_RESOURCES: Final = EditableKind(
    name=CONFIGURATION,
    plural="limitedresources",
    fields=(),
    groups=(limited_resources.ENTRY, limited_resources.SCOPE),
    show=limited_resources.show,
    build=limited_resources.build,
    is_namespaced=False,
)
NAMESPACE_CLASS: Final = EditableKind(
    name="NamespaceClass",
    plural="namespaceclasses",
    fields=namespace_class.FIELDS,
    groups=(namespace_class.PARAMETER, namespace_class.POLICY),
    show=namespace_class.show,
    build=namespace_class.build,
    is_namespaced=False,
)
"""Of the whole fleet: it is none of the kinds of a cluster."""
KINDS: Final = (LIMIT_RANGE, METADATA_POLICY, RESOURCE_QUOTA, PRIORITY_CLASS, LIMITED_RESOURCES)
BY_PLURAL: Final = {kind.plural: kind for kind in KINDS}
BY_NAME: Final = {kind.name: kind for kind in KINDS}
