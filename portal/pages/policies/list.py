"""PolicyListView: policies of the whole fleet, by denials or by a column, a page at a time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from django.shortcuts import redirect
from django.urls import reverse

from admission.record.policy_hits import PolicyHits, hits_since
from engine.policy import Enforcement
from policies import roles
from policies.drafts.kinds import BY_NAME
from portal.pages.lists import page_of
from portal.pages.policies.choices import (
    FacetFigures,
    facets_of,
    filters_chosen,
    query_of,
    tabs_of,
)
from portal.pages.policies.fleet.columns import (
    column_choices,
    group_choices,
    heads_of,
    shown_columns,
)
from portal.pages.policies.fleet.groups import PagedRows, placed
from portal.pages.policies.selection import (
    BY_DENIALS,
    COUNTED,
    GROUPS,
    NARROWING,
    POLICY_MODELS,
    PORTAL_ONLY,
    PolicySelection,
    asked_by,
    authors_of,
    key_of,
    sync_word,
)
from portal.pages.shell.chosen import visible_clusters
from portal.pages.views import ClusterPage, PortalPage, names_of, route_of
from sync.models import SyncedObject

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from django.http import HttpRequest, HttpResponse

    from admission.record.policy_hits import RecentHits
    from portal.pages.policies.selection import Asked, PolicyCounts, PolicyRow

HITS_OF: Final = timedelta(hours=24)
NO_HITS: Final = PolicyHits()
KEPT: Final = (*COUNTED, "user", "label", "order", "group", "columns")
"""The fields of the address that a search keeps."""


class PolicyListView(PortalPage):
    """The policies that the reader may see, of all clusters or of the chosen one."""

    template_name = "policies/policies.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The requested page, the filters with their numbers, and what may be created."""
        user, asked = self.request.user, asked_by(self.request.GET)
        selection = PolicySelection(user, asked)
        counts, hits = selection.counts(), recent_hits(user, asked.cluster)
        figures = FacetFigures(
            counts=counts, by_user=selection.by_user(), by_label=selection.by_label()
        )
        page = page_of(_paged(selection, counts, hits), self.request)
        narrowing = dict.fromkeys(NARROWING, "")
        return super().get_context_data(
            **kwargs,
            page=page,
            lines=_grouped(lines_of(page.object_list, hits), asked.group, counts),
            asked=asked,
            total=counts.total,
            hits=hits,
            tabs=tabs_of(asked, counts),
            facets=facets_of(asked, figures, visible_clusters(self.request)),
            filters_chosen=filters_chosen(asked),
            heads=heads_of(asked),
            shown=shown_columns(asked),
            column_choices=column_choices(asked),
            group_choices=group_choices(asked),
            kept=[(name, getattr(asked, name)) for name in KEPT],
            everything=query_of(asked, **narrowing if asked.is_narrowed else {"cluster": ""}),
            begin=self.begin(asked),
            asked_query=query_of(asked),
            rights=self.rights(asked.kind),
            modes=[mode.value for mode in Enforcement],
        )

    def rights(self, kind: str) -> dict[str, bool]:
        """What the person may do to many at once, somewhere; each policy is checked by itself."""
        kinds = [kind] if kind else list(POLICY_MODELS)
        needed = {"mode": "change", "copy": "add", "delete": "delete"}
        return {
            act: (kind in POLICY_MODELS or act == "delete" or not kind)
            and any(
                roles.may_somewhere(self.request.user, roles.writing(each, action))
                for each in kinds
            )
            for act, action in needed.items()
        }

    def begin(self, asked: Asked) -> str:
        """Where a new policy begins, with what is known of it; empty for those who may not."""
        user = self.request.user
        kinds = [kind.name for kind in BY_NAME.values() if not kind.is_configuration]
        if not any(roles.may_somewhere(user, roles.writing(kind, "add")) for kind in kinds):
            return ""
        known = {name: getattr(asked, name) for name in ("kind", "cluster", "namespace")}
        query = urlencode({name: value for name, value in known.items() if value})
        return reverse("policy-begin") + (f"?{query}" if query else "")


class PoliciesOfClusterView(ClusterPage):
    """The address that the list of one cluster had before there was one for the fleet."""

    takes_part = True

    def get(self, request: HttpRequest, *_args: Any, **_kwargs: Any) -> HttpResponse:
        """Lead to the list of the fleet, narrowed to the cluster."""
        query = request.GET.copy()
        query["cluster"] = self.cluster.name
        return redirect(f"{reverse('all-policies')}?{query.urlencode()}")


def recent_hits(user: Any, cluster: str) -> RecentHits:
    """What the policies that the user may see found in the decisions of a day."""
    return hits_since(datetime.now(UTC) - HITS_OF, cluster=cluster, user=user)


def _paged(selection: PolicySelection, counts: PolicyCounts, hits: RecentHits) -> PagedRows:
    """All rows in the order asked for; only those with hits are read before a page is."""
    asked = selection.asked
    first = denied_first(selection, hits) if asked.sorted_by == BY_DENIALS else []
    sizes = None
    if first and asked.group:
        numbers = counts.by_field[asked.group]
        sizes = {group: numbers[group] for group in selection.groups()}
    column = GROUPS.get(asked.group, "")
    places = placed(first, counts.total, column=column, sizes=sizes)
    return PagedRows(places, selection.rows(without=first))


def denied_first(selection: PolicySelection, hits: RecentHits) -> list[PolicyRow]:
    """The policies asked for that have hits, those with the most first."""
    found = selection.rows_named(hits.by_policy.keys())
    return sorted(found, key=lambda row: (-hits.by_policy[key_of(row)].total, *key_of(row)))


def _grouped(lines: list[dict[str, Any]], group: str, counts: PolicyCounts) -> list[dict[str, Any]]:
    """The lines with the group of each, and how many policies all pages have of it."""
    for line in lines:
        line["group"] = line[GROUPS[group]] if group else ""
        line["group_number"] = counts.by_field[group][line["group"]] if group else 0
    return lines


def lines_of(rows: Iterable[PolicyRow], hits: RecentHits) -> list[dict[str, Any]]:
    """The rows with addresses, the author of the last change, hits and state; two queries."""
    lines = list(rows)
    authors, states = authors_of(lines), _states_of(lines)
    for line in lines:
        key = key_of(line)
        line["user"] = authors.get((line["kind_name"], line["id"]), "")
        line["sync"] = states.get(key, PORTAL_ONLY)
        line["hits"] = hits.by_policy.get(key, NO_HITS)
        line["bars"] = _bars(line["hits"].parts)
        line["address"], line["history"] = _row_addresses(line)
        line["label_words"] = ", ".join(f"{key}={value}" for key, value in line["labels"].items())
        line["pick"] = "/".join(key)
        line["query"] = urlencode({"pick": line["pick"]})
        line["decisions"] = {
            "cluster": line["cluster_text"],
            "policy": f"{line['kind_name']}/{line['namespace_text']}/{line['name']}",
            "last": "24h",
        }
    return lines


def _bars(parts: Sequence[int]) -> str:
    """The path of a bar for each part that has a hit, in a drawing of 48 by 16."""
    most = max(parts)
    return "".join(
        f"M{2 * place + 1} 16V{16 - max(2, round(16 * number / most))}"
        for place, number in enumerate(parts)
        if number
    )


def _states_of(lines: Sequence[PolicyRow]) -> Mapping[tuple[str, ...], str]:
    of_column = {"kind": "kind_name", "namespace": "namespace_text", "name": "name"}
    # Lookups that match these objects, and a few others: each is known by its whole key.
    objects = SyncedObject.objects.filter(
        **{f"{name}__in": {line[column] for line in lines} for name, column in of_column.items()},
        cluster__name__in={line["cluster_text"] for line in lines},
        gone=None,
    )
    columns = objects.values_list(
        "cluster__name", "kind", "namespace", "name", "state", "cluster__connection__is_paused"
    )
    return {tuple(key): sync_word(state, is_paused) for *key, state, is_paused in columns}


def _row_addresses(row: PolicyRow) -> tuple[str, str]:
    """The editor of a policy, and its history."""
    kind = BY_NAME[row["kind_name"]]
    route_names = names_of(
        kind, cluster=row["cluster_text"], namespace=row["namespace_text"], name=row["name"]
    )
    route = route_of(kind)
    return reverse(route, kwargs=route_names), reverse(f"{route}-revisions", kwargs=route_names)
