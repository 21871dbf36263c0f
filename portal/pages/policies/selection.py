"""PolicySelection: the policies that a list asks for, in one UNION; PolicyCounts by its fields."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Final

from django.db.models import CharField, Count, F, OuterRef, Q, Subquery, Value
from django.db.models.functions import Coalesce

from policies import roles
from policies.drafts.kinds import PRIORITY_CLASS
from policies.models import (
    LimitRange,
    MetadataPolicy,
    PolicyRevision,
    PriorityClass,
    ResourceQuota,
)
from portal.pages.policies.fleet.terms import MOST_WORDS, Terms, has_label
from sync.models import SyncedObject

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    PolicyRow = dict[str, Any]

_OF_POLICY: Final = ("namespace__cluster", "namespace__name")
_OF_PRIORITY_CLASS: Final = ("cluster", "")
"""The paths to the cluster and to the name of the namespace."""
POLICY_MODELS: Final[Mapping[str, Any]] = {
    model.kind: model for model in (LimitRange, MetadataPolicy, ResourceQuota)
}
LONGEST_FILTER: Final = 253
_COLUMNS: Final = (
    "id", "kind_name", "cluster_text", "namespace_text", "name", "mode", "revision", "updated",
    "labels",
)  # fmt: skip
_PLACE: Final = ("namespace_text", "name", "cluster_text", "kind_name")
KINDS: Final = (*POLICY_MODELS, PRIORITY_CLASS.name)
"""What has a tab; priority classes are no policies, and only listed by themselves."""
BY_DENIALS: Final = "denials"
PORTAL_ONLY: Final = "portal-only"
"""The state of a policy that no connected cluster has, or is to have."""
COUNTED: Final = ("kind", "cluster", "namespace", "mode", "sync")
"""The fields that have facets or tabs."""
NARROWING: Final = ("namespace", "kind", "mode", "sync", "user", "label", "words")
"""The fields that leave policies out, but for the cluster."""
GROUPS: Final = {"namespace": "namespace_text", "kind": "kind_name", "cluster": "cluster_text"}
"""What rows can be grouped by, and the column of the query."""
ORDERS: Final[Mapping[str, tuple[str, ...]]] = {
    BY_DENIALS: _PLACE,
    "name": ("name", "namespace_text", "cluster_text", "kind_name"),
    "namespace": _PLACE,
    "cluster": ("cluster_text", "namespace_text", "name", "kind_name"),
    "mode": ("mode", *_PLACE),
    "version": ("revision", *_PLACE),
    "changed": ("updated", *_PLACE),
}
"""What a list can be sorted by; a ``-`` before it turns it round. Denials come first by default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the address asks for; an empty field asks for everything."""

    cluster: str = ""
    namespace: str = ""
    kind: str = ""
    mode: str = ""
    sync: str = ""
    user: str = ""
    label: str = ""
    words: str = ""
    order: str = ""
    group: str = ""
    columns: str = ""

    @property
    def sorted_by(self) -> str:
        """The column that sorts, without its direction; denials for one that is unknown."""
        column = self.order.removeprefix("-")
        return column if column in ORDERS else BY_DENIALS

    @property
    def is_turned(self) -> bool:
        """Whether the last come first."""
        return self.order.startswith("-")

    @property
    def is_narrowed(self) -> bool:
        """Whether anything but the cluster, which the frame shows, is left out."""
        return any(getattr(self, name) for name in NARROWING)


def asked_by(query: Mapping[str, str]) -> Asked:
    """Read the fields of an address; a kind that has no tab is none, nor is an unknown group."""
    asked = Asked(
        **{
            field.name: query.get(field.name, "").replace("\0", "").strip()[:LONGEST_FILTER]
            for field in fields(Asked)
        }
    )
    return replace(
        asked,
        kind=asked.kind if asked.kind in KINDS else "",
        group=asked.group if asked.group in GROUPS else "",
        words=" ".join(asked.words.split()[:MOST_WORDS]),
    )


class PolicySelection:
    """The policies that a person may see and asks for."""

    def __init__(self, user: Any, asked: Asked) -> None:
        self.user, self.asked = user, asked
        self._terms = Terms(asked.words)
        # By what is asked: a page asks the same for its rows, its facets and its first rows.
        self._built: dict[tuple[Asked, bool], dict[str, Any]] = {}

    def rows(self, *, without: Iterable[PolicyRow] = ()) -> Any:
        """One query of all kinds, in the order asked for; some rows can be left out."""
        left_out: dict[str, list[int]] = {}
        for row in without:
            left_out.setdefault(row["kind_name"], []).append(row["id"])
        order = ORDERS[self.asked.sorted_by]
        direction = "-" if self.asked.is_turned and self.asked.sorted_by != BY_DENIALS else ""
        queries = [
            query.exclude(pk__in=left_out.get(kind, ())).values(*_COLUMNS)
            for kind, query in self.queries().items()
        ]
        group = [GROUPS[self.asked.group]] if self.asked.group else []
        return _union(queries).order_by(*group, f"{direction}{order[0]}", *order[1:])

    def groups(self) -> list[str]:
        """The values of the column that groups, in the order of ``rows``; one query."""
        column = GROUPS[self.asked.group]
        values = [query.values_list(column).distinct() for query in self.queries().values()]
        return list(dict.fromkeys(value for (value,) in _union(values).order_by(column)))

    def rows_named(self, keys: Collection[tuple[str, str, str, str]]) -> list[PolicyRow]:
        """The rows of these policies: cluster, kind, namespace and name."""
        names = {name for *_, name in keys}
        namespaces = {namespace for *_, namespace, _ in keys}
        queries = [
            query.filter(name__in=names, namespace__name__in=namespaces).values(*_COLUMNS)
            for kind, query in self.queries().items()
            if kind in POLICY_MODELS
        ]
        if not queries:
            return []
        # It matches more pairs than there are keys; the key decides.
        return [row for row in _union(queries) if key_of(row) in keys]

    def counts(self) -> PolicyCounts:
        """How many there are by the fields that have facets, chosen or not; one query."""
        by_kind = self._asking(**dict.fromkeys(COUNTED, "")).queries(all_kinds=True)
        columns = ("kind_name", "cluster_text", "namespace_text", "mode", "state", "is_paused")
        queries = [query.values_list(*columns) for query in by_kind.values()]
        return PolicyCounts.of(self.asked, _grouped(queries))

    def by_user(self) -> Counter[str]:
        """How many each person changed last, chosen or not; one query."""
        queries = [
            query.annotate(user_text=_user_text(kind, *_OF_POLICY)).values_list("user_text")
            for kind, query in self._asking(user="").queries().items()
            if kind in POLICY_MODELS
        ]
        return _numbers(queries)

    def by_label(self) -> Counter[str]:
        """How many have each label, chosen or not; one query, of equal sets of labels."""
        queries = [
            query.exclude(labels={}).values_list("labels")
            for query in self._asking(label="").queries().values()
        ]
        found: Counter[str] = Counter()
        for labels, number in _grouped(queries):
            found.update({f"{key}={value}": number for key, value in labels.items()})
        return found

    def _asking(self, **other: str) -> PolicySelection:
        other_selection = PolicySelection(self.user, replace(self.asked, **other))
        other_selection._terms, other_selection._built = self._terms, self._built
        return other_selection

    def queries(self, *, all_kinds: bool = False) -> Mapping[str, Any]:
        """A query for each kind, with columns of the same names; built once.

        The state in the cluster is among them only where it is counted or asked for: each row
        looks it up.
        """
        asked = (self.asked, all_kinds)
        if asked not in self._built:
            self._built[asked] = self._queries(all_kinds=all_kinds)
        return self._built[asked]

    def _queries(self, *, all_kinds: bool) -> dict[str, Any]:
        kind, with_sync = self.asked.kind, all_kinds or bool(self.asked.sync)
        queries = {
            name: self._policies(model, with_sync=with_sync)
            for name, model in POLICY_MODELS.items()
            if all_kinds or kind in ("", name)
        }
        if all_kinds or kind == PRIORITY_CLASS.name:
            queries[PRIORITY_CLASS.name] = self._priority_classes(with_sync=with_sync)
        return queries

    def _policies(self, model: Any, *, with_sync: bool) -> Any:
        seen = roles.visible(
            model.objects.all(),
            self.user,
            cluster="namespace__cluster__name",
            namespace="namespace__name",
        )
        asked = self.asked
        wanted = Q()
        if asked.cluster:
            wanted &= Q(namespace__cluster__name=asked.cluster)
        if asked.namespace:
            wanted &= Q(namespace__name=asked.namespace)
        if asked.mode:
            wanted &= Q(enforcement=asked.mode)
        if asked.label:
            wanted &= has_label(asked.label)
        wanted &= self._terms.of_policies(model.kind)
        found = seen.filter(wanted).annotate(
            kind_name=Value(model.kind, output_field=CharField()),
            cluster_text=F("namespace__cluster__name"),
            namespace_text=F("namespace__name"),
            mode=F("enforcement"),
        )
        if with_sync:
            found = _with_state(found, model.kind, *_OF_POLICY)
        if asked.sync:
            found = found.filter(_in_state(asked.sync))
        if asked.user:
            found = found.annotate(user_text=_user_text(model.kind, *_OF_POLICY)).filter(
                user_text=asked.user
            )
        # Without an order: SQLite allows none in the parts of a UNION.
        return found.order_by()

    def _priority_classes(self, *, with_sync: bool) -> Any:
        """Priority classes, which have neither a namespace nor a mode to match."""
        seen = roles.visible(
            PriorityClass.objects.all(), self.user, cluster="cluster__name", namespace=None
        ).annotate(
            kind_name=Value(PRIORITY_CLASS.name, output_field=CharField()),
            cluster_text=F("cluster__name"),
            namespace_text=Value("", output_field=CharField()),
            mode=Value("", output_field=CharField()),
        )
        if with_sync:
            seen = _with_state(seen, PRIORITY_CLASS.name, *_OF_PRIORITY_CLASS)
        asked = self.asked
        if asked.namespace or asked.mode or asked.user:
            seen = seen.none()
        if asked.cluster:
            seen = seen.filter(cluster__name=asked.cluster)
        if asked.sync:
            seen = seen.filter(_in_state(asked.sync))
        if asked.label:
            seen = seen.filter(has_label(asked.label))
        return seen.filter(self._terms.of_priority_classes()).order_by()


def _with_state(policies: Any, kind: str, cluster: str, namespace: str) -> Any:
    """Policies with what ``sync_word`` wants: one look into an index for each."""
    found = SyncedObject.objects.filter(
        cluster=OuterRef(f"{cluster}_id"),
        kind=kind,
        namespace=OuterRef(namespace) if namespace else "",
        name=OuterRef("name"),
        gone=None,
    )
    return policies.annotate(
        state=Subquery(found.order_by().values("state")[:1]),
        is_paused=F(f"{cluster}__connection__is_paused"),
    )


def _in_state(word: str) -> Q:
    """What ``sync_word`` has this word for."""
    pending = Q(state=SyncedObject.State.PENDING)
    if word == "paused":
        return pending & Q(is_paused=True)
    if word == "writing":
        return pending & (Q(is_paused=False) | Q(is_paused=None))
    if word == PORTAL_ONLY:
        return Q(state=None)
    return Q(state=word) & ~pending


def sync_word(state: str | None, is_paused: object) -> str:
    """The word for whether a cluster has a policy, by the state of its object, if there is one."""
    if state != SyncedObject.State.PENDING:
        return state or PORTAL_ONLY
    return "paused" if is_paused else "writing"


def _user_text(kind: str, cluster: str, namespace: str) -> Coalesce:
    """Who wrote the version in force; empty for what has no history: one look into an index."""
    written = PolicyRevision.objects.filter(
        cluster=OuterRef(f"{cluster}__name"),
        kind=kind,
        namespace=OuterRef(namespace) if namespace else "",
        name=OuterRef("name"),
        number=OuterRef("revision"),
    )
    return Coalesce(Subquery(written.order_by().values("user")[:1]), Value(""))


@dataclass(frozen=True, slots=True)
class PolicyCounts:
    """Numbers by the fields of ``COUNTED``; each figure ignores the choice of its own field."""

    asked: Asked
    by_field: Mapping[str, Counter[str]]

    @classmethod
    def of(cls, asked: Asked, groups: Iterable[tuple[Any, ...]]) -> PolicyCounts:
        """Add up groups of kind, cluster, namespace, mode, and state, each with its number."""
        by_field: dict[str, Counter[str]] = {name: Counter() for name in COUNTED}
        chosen = {
            name: choice for name in COUNTED if name != "kind" and (choice := getattr(asked, name))
        }
        # Of no kind priority classes are none; to choose from, they are counted as well.
        kinds = {asked.kind} if asked.kind else set(POLICY_MODELS)
        # Most groups differ by their namespace alone, which is looked at by itself.
        of_place: dict[tuple[Any, ...], Counter[str]] = {}
        for kind, cluster, namespace, *others, number in groups:
            of_place.setdefault((kind, cluster, *others), Counter())[namespace] += number
        for (kind, cluster, mode, state, is_paused), by_namespace in of_place.items():
            sync = sync_word(state, is_paused)
            group = {"kind": kind, "cluster": cluster, "mode": mode, "sync": sync}
            missed = [name for name, value in group.items() if chosen.get(name, value) != value]
            if kind not in kinds:
                missed.append("kind")
            if not missed:
                by_field["namespace"].update(by_namespace)
            number = by_namespace[asked.namespace] if asked.namespace else by_namespace.total()
            if len(missed) > 1 or not number:
                continue
            for name in missed or group:
                by_field[name][group[name]] += number
        return cls(asked, by_field)

    @property
    def total(self) -> int:
        """The policies that the list has."""
        return self.of_kinds()[self.asked.kind]

    def of_kinds(self) -> Counter[str]:
        """By kind; under the empty name all policies, of which priority classes are none."""
        found = self.by_field["kind"].copy()
        found[""] = sum(found[kind] for kind in POLICY_MODELS)
        return found


def authors_of(rows: Iterable[PolicyRow]) -> Mapping[tuple[str, int], str]:
    """Who wrote the version in force, by kind and id; one query."""
    by_kind: dict[str, list[int]] = {}
    for row in rows:
        by_kind.setdefault(row["kind_name"], []).append(row["id"])
    queries = []
    for kind, ids in by_kind.items():
        model = POLICY_MODELS.get(kind, PriorityClass)
        place = _OF_POLICY if kind in POLICY_MODELS else _OF_PRIORITY_CLASS
        named = model.objects.filter(pk__in=ids).annotate(
            kind_name=Value(kind, output_field=CharField()), user_text=_user_text(kind, *place)
        )
        queries.append(named.order_by().values_list("kind_name", "id", "user_text"))
    return {(kind, pk): author for kind, pk, author in (_union(queries) if queries else ())}


def key_of(row: PolicyRow) -> tuple[str, str, str, str]:
    """Cluster, kind, namespace and name of a row."""
    return row["cluster_text"], row["kind_name"], row["namespace_text"], row["name"]


def _grouped(queries: list[Any]) -> Any:
    return _union([query.annotate(number=Count("pk")) for query in queries]) if queries else ()


def _numbers(queries: list[Any]) -> Counter[str]:
    """Numbers by the one column of the queries."""
    found: Counter[str] = Counter()
    for value, number in _grouped(queries):
        found[value] += number
    return found


def _union(queries: list[Any]) -> Any:
    first_query, *other_queries = queries
    # UNION ALL: rows of different kinds are never equal, and UNION would sort them to see.
    return first_query.union(*other_queries, all=True) if other_queries else first_query
