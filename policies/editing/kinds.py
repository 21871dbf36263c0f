"""The kinds that have an editor: their words, their addresses, how their forms are made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from policies.editing import limit_ranges, limited, metadata_rules, priority_classes, quotas
from policies.manifests.objects import ADMISSION_VERSIONS, API_VERSIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from policies.editing.sheets import Built, Sheet

CONFIGURATION: Final = "ResourceQuotaConfiguration"
_COMMON: Final = ("name", "enforcement")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
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
        """Whether it is the one configuration of a cluster, without a name."""
        return self.name == CONFIGURATION

    def blank(self, namespace: str = "") -> dict[str, Any]:
        """A manifest that says nothing yet."""
        if self.is_configuration:
            return {"apiVersion": ADMISSION_VERSIONS[0], "kind": self.name, "limitedResources": []}
        metadata = {"name": "", **({"namespace": namespace} if self.is_namespaced else {})}
        head = {"apiVersion": API_VERSIONS[self.name], "kind": self.name, "metadata": metadata}
        return {**head, **({"spec": {}} if self.is_namespaced else {})}


LIMIT_RANGE: Final = Kind(
    name="LimitRange",
    plural="limitranges",
    fields=_COMMON,
    groups=(limit_ranges.ROW,),
    show=limit_ranges.show,
    build=limit_ranges.build,
)
RESOURCE_QUOTA: Final = Kind(
    name="ResourceQuota",
    plural="resourcequotas",
    fields=_COMMON,
    groups=(quotas.HARD, quotas.SCOPE),
    show=quotas.show,
    build=quotas.build,
)
METADATA_POLICY: Final = Kind(
    name="MetadataPolicy",
    plural="metadatapolicies",
    fields=(*_COMMON, *metadata_rules.FLAGS),
    groups=(metadata_rules.RULE, metadata_rules.IF, metadata_rules.THEN),
    show=metadata_rules.show,
    build=metadata_rules.build,
)
PRIORITY_CLASS: Final = Kind(
    name="PriorityClass",
    plural="priorityclasses",
    fields=("name", *priority_classes.FIELDS),
    groups=(),
    show=priority_classes.show,
    build=priority_classes.build,
    is_namespaced=False,
)
LIMITED_RESOURCES: Final = Kind(
    name=CONFIGURATION,
    plural="limitedresources",
    fields=(),
    groups=(limited.ENTRY, limited.SCOPE),
    show=limited.show,
    build=limited.build,
    is_namespaced=False,
)
KINDS: Final = (LIMIT_RANGE, METADATA_POLICY, RESOURCE_QUOTA, PRIORITY_CLASS, LIMITED_RESOURCES)
BY_PLURAL: Final = {kind.plural: kind for kind in KINDS}
BY_NAME: Final = {kind.name: kind for kind in KINDS}
