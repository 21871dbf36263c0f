"""PolicyListView: policies of all kinds in one UNION, filtered by namespace, kind, mode, words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.core.paginator import Paginator
from django.db.models import CharField, F, Value
from django.urls import reverse

from engine.policy import Enforcement
from policies import roles
from policies.drafts.kinds import BY_NAME, PRIORITY_CLASS
from policies.models import (
    LimitRange,
    MetadataPolicy,
    Namespace,
    PolicyRevision,
    PriorityClass,
    ResourceQuota,
)
from portal.pages.policies.page import names_of, route_of
from portal.pages.views import ClusterPage

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.db.models import QuerySet

ON_A_PAGE: Final = 50
NAMES_OFFERED: Final = 1000
_UNION_COLUMNS: Final = ("kind_name", "namespace_text", "name", "mode", "revision", "updated")
_POLICY_MODELS: Final = (LimitRange, MetadataPolicy, ResourceQuota)
LONGEST_FILTER: Final = 253


class PolicyListView(ClusterPage):
    """The policies of a cluster, a page of them at a time."""

    template_name = "policies/policies.html"
    takes_part = True

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The requested page, the filters, and the kinds that may be created here."""
        user, cluster = self.request.user, self.cluster
        asked = {
            name: self.request.GET.get(name, "").replace("\0", "")[:LONGEST_FILTER]
            for name in ("namespace", "kind", "mode", "words")
        }
        pages = Paginator(self.matching(asked), ON_A_PAGE)
        page = pages.get_page(self.request.GET.get("page"))
        namespaces = roles.visible(
            Namespace.objects.filter(cluster=cluster).order_by("name"),
            user,
            cluster="cluster__name",
            namespace="name",
        )
        return super().get_context_data(
            **kwargs,
            page=page,
            lines=self.lines(page.object_list),
            asked=asked,
            is_asked=any(asked.values()),
            kinds=[kind.name for kind in BY_NAME.values() if not kind.is_configuration],
            makes=[kind for kind in BY_NAME.values() if kind.is_namespaced],
            modes=list(Enforcement),
            namespaces=list(namespaces.values_list("name", flat=True)[:NAMES_OFFERED]),
            may_make=any(
                roles.may_somewhere(user, roles.writing(kind.name, "add"))
                for kind in BY_NAME.values()
            ),
        )

    def matching(self, asked: dict[str, str]) -> Any:
        """The policies that match, as one query over all kinds."""
        kind_queries = [
            self._narrowed_query(model.objects.filter(namespace__cluster=self.cluster), asked)
            for model in _POLICY_MODELS
            if asked["kind"] in ("", model.kind)
        ]
        # Priority classes have neither a namespace nor a mode to match.
        if asked["kind"] in ("", PRIORITY_CLASS.name) and not (asked["namespace"] or asked["mode"]):
            kind_queries.append(self._priority_query(asked))
        if not kind_queries:
            return LimitRange.objects.none()
        first_query, *other_queries = kind_queries
        # UNION ALL: rows of different kinds are never equal, and UNION would sort them to see.
        union = first_query.union(*other_queries, all=True) if other_queries else first_query
        return union.order_by("namespace_text", "name", "kind_name")

    def _narrowed_query(self, queryset: QuerySet[Any], asked: dict[str, str]) -> Any:
        seen = roles.visible(
            queryset,
            self.request.user,
            cluster="namespace__cluster__name",
            namespace="namespace__name",
        )
        if asked["namespace"]:
            seen = seen.filter(namespace__name=asked["namespace"])
        if asked["mode"]:
            seen = seen.filter(enforcement=asked["mode"])
        if asked["words"]:
            seen = seen.filter(name__icontains=asked["words"])
        kind_column = Value(queryset.model.kind, output_field=CharField())
        columns = {"kind_name": kind_column, "namespace_text": F("namespace__name")}
        # Without an order: SQLite allows none in the parts of a UNION.
        return seen.order_by().annotate(**columns, mode=F("enforcement")).values(*_UNION_COLUMNS)

    def _priority_query(self, asked: dict[str, str]) -> Any:
        classes = roles.visible(
            PriorityClass.objects.filter(cluster=self.cluster),
            self.request.user,
            cluster="cluster__name",
            namespace=None,
        )
        if asked["words"]:
            classes = classes.filter(name__icontains=asked["words"])
        text_columns = {
            name: Value(text, output_field=CharField())
            for name, text in (("kind_name", "PriorityClass"), ("namespace_text", ""), ("mode", ""))
        }
        return classes.order_by().annotate(**text_columns).values(*_UNION_COLUMNS)

    def lines(self, rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        """The rows with their addresses and the author of each last change."""
        policy_rows = list(rows)
        # One query for the whole page. It matches more pairs than the rows are; the key decides.
        revisions = PolicyRevision.objects.filter(
            cluster=self.cluster.name,
            kind__in={row["kind_name"] for row in policy_rows},
            namespace__in={row["namespace_text"] for row in policy_rows},
            name__in={row["name"] for row in policy_rows},
            number__in={row["revision"] for row in policy_rows},
        )
        revision_columns = revisions.values_list("kind", "namespace", "name", "number", "user")
        authors = {tuple(revision_key): user for *revision_key, user in revision_columns}
        for row in policy_rows:
            revision_key = (row["kind_name"], row["namespace_text"], row["name"], row["revision"])
            row["user"] = authors.get(revision_key, "")
            row["address"] = _row_address(self.cluster.name, row)
        return policy_rows


def _row_address(cluster: str, row: dict[str, Any]) -> str:
    kind = BY_NAME[row["kind_name"]]
    route_names = names_of(kind, cluster=cluster, namespace=row["namespace_text"], name=row["name"])
    return reverse(route_of(kind), kwargs=route_names)
