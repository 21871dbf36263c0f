"""Kind: names, operations and columns of what ``get`` lists; a misspelt kind gets a suggestion."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import click
from click.shell_completion import CompletionItem

from gatehouse_cli.client import operations
from gatehouse_cli.objects import columns

if TYPE_CHECKING:
    from gatehouse_cli.client.answers import ObjectManagersJson
    from gatehouse_cli.client.shape import ApiOperation, Page
    from gatehouse_cli.output import Column


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of objects; ``plural`` is its segment in addresses of the API."""

    plural: str
    singular: str
    manifest_kind: str = ""
    """The ``kind`` of its manifests; empty if it has none."""
    aliases: tuple[str, ...] = ()
    listing: ApiOperation[Page[Any]]
    removal: ApiOperation[Any] | None = None
    managers: ApiOperation[ObjectManagersJson] | None = None
    columns: tuple[Column, ...]
    is_namespaced: bool = False
    is_record: bool = False
    """Rows that only grow: ``get`` shows the newest of them."""
    cluster_filter: str = "cluster"
    """The parameter that selects a cluster; empty for clusters themselves."""
    name_filter: str = "name__exact"

    @property
    def names(self) -> tuple[str, ...]:
        """All names that mean this kind."""
        return (self.plural, self.singular, *self.aliases)


CLUSTERS: Final = Kind(
    plural="clusters",
    singular="cluster",
    listing=operations.CLUSTERS_LIST,
    removal=operations.CLUSTERS_DESTROY,
    managers=operations.CLUSTERS_MANAGERS_RETRIEVE,
    columns=columns.OF_CLUSTERS,
    cluster_filter="",
)
NAMESPACES: Final = Kind(
    plural="namespaces",
    singular="namespace",
    manifest_kind="Namespace",
    aliases=("ns",),
    listing=operations.NAMESPACES_LIST,
    removal=operations.NAMESPACES_DESTROY,
    managers=operations.NAMESPACES_MANAGERS_RETRIEVE,
    columns=columns.OF_NAMESPACES,
)
KINDS: Final = (
    CLUSTERS,
    NAMESPACES,
    Kind(
        plural="limitranges",
        singular="limitrange",
        manifest_kind="LimitRange",
        aliases=("limits",),
        listing=operations.LIMITRANGES_LIST,
        removal=operations.LIMITRANGES_DESTROY,
        managers=operations.LIMITRANGES_MANAGERS_RETRIEVE,
        columns=columns.OF_LIMIT_RANGES,
        is_namespaced=True,
    ),
    Kind(
        plural="metadatapolicies",
        singular="metadatapolicy",
        manifest_kind="MetadataPolicy",
        aliases=("mdp",),
        listing=operations.METADATAPOLICIES_LIST,
        removal=operations.METADATAPOLICIES_DESTROY,
        managers=operations.METADATAPOLICIES_MANAGERS_RETRIEVE,
        columns=columns.OF_METADATA_POLICIES,
        is_namespaced=True,
    ),
    Kind(
        plural="resourcequotas",
        singular="resourcequota",
        manifest_kind="ResourceQuota",
        aliases=("quota", "quotas"),
        listing=operations.RESOURCEQUOTAS_LIST,
        removal=operations.RESOURCEQUOTAS_DESTROY,
        managers=operations.RESOURCEQUOTAS_MANAGERS_RETRIEVE,
        columns=columns.OF_RESOURCE_QUOTAS,
        is_namespaced=True,
    ),
    Kind(
        plural="tests",
        singular="test",
        manifest_kind="PolicyTest",
        aliases=("policytest", "policytests"),
        listing=operations.TESTS_LIST,
        removal=operations.TESTS_DESTROY,
        managers=operations.TESTS_MANAGERS_RETRIEVE,
        columns=columns.OF_TESTS,
        is_namespaced=True,
    ),
    Kind(
        plural="priorityclasses",
        singular="priorityclass",
        manifest_kind="PriorityClass",
        aliases=("pc",),
        listing=operations.PRIORITYCLASSES_LIST,
        removal=operations.PRIORITYCLASSES_DESTROY,
        managers=operations.PRIORITYCLASSES_MANAGERS_RETRIEVE,
        columns=columns.OF_PRIORITY_CLASSES,
    ),
    Kind(
        plural="limitedresources",
        singular="limitedresource",
        listing=operations.LIMITEDRESOURCES_LIST,
        columns=columns.OF_LIMITED_RESOURCES,
        cluster_filter="name__exact",
    ),
    Kind(
        plural="namespaceclasses",
        singular="namespaceclass",
        manifest_kind="NamespaceClass",
        aliases=("nsclass",),
        listing=operations.NAMESPACECLASSES_LIST,
        removal=operations.NAMESPACECLASSES_DESTROY,
        columns=columns.OF_NAMESPACE_CLASSES,
        cluster_filter="",
    ),
    Kind(
        plural="classmembers",
        singular="classmember",
        listing=operations.CLASSMEMBERS_LIST,
        columns=columns.OF_CLASS_MEMBERS,
        is_namespaced=True,
        name_filter="namespaceClass",
    ),
    Kind(
        plural="classpolicies",
        singular="classpolicy",
        aliases=("exceptions",),
        listing=operations.CLASSPOLICIES_LIST,
        columns=columns.OF_CLASS_POLICIES,
        is_namespaced=True,
        name_filter="name",
    ),
    Kind(
        plural="decisions",
        singular="decision",
        listing=operations.DECISIONS_LIST,
        columns=columns.OF_DECISIONS,
        is_namespaced=True,
        is_record=True,
        name_filter="name",
    ),
    Kind(
        plural="revisions",
        singular="revision",
        aliases=("history",),
        listing=operations.REVISIONS_LIST,
        columns=columns.OF_REVISIONS,
        is_namespaced=True,
        is_record=True,
    ),
)
_BY_NAME: Final = {name: kind for kind in KINDS for name in kind.names}


class KindType(click.ParamType[Kind]):
    """A kind on the command line, as kubectl takes it: any of its names, in any case."""

    name = "kind"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Kind:
        """Find the kind; fails with the closest name."""
        if isinstance(value, Kind):
            return value
        found = kind_named(value)
        if found is None:
            near = difflib.get_close_matches(value.lower(), _BY_NAME, n=1)
            known = f"known: {', '.join(kind.plural for kind in KINDS)}"
            hint = f"did you mean {near[0]}? {known}" if near else known
            self.fail(f'there is no kind "{value}"; {hint}', param, ctx)
        return found

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """The kinds that begin so."""
        del ctx, param
        return [CompletionItem(k.plural) for k in KINDS if k.plural.startswith(incomplete)]


def kind_named(name: str) -> Kind | None:
    """The kind of this name, or of this ``kind`` in a manifest."""
    return _BY_NAME.get(name.lower())
