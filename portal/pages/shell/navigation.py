"""The Shell of a page: groups of the navigation, breadcrumbs, choices of the cluster, tabs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from django.urls import reverse

from policies import roles
from portal.pages.shell.chosen import ClusterChoice, chosen_cluster, cluster_choices
from portal.pages.shell.times import zone_label, zone_of
from portal.pages.views import AT, PAST

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from django.http import HttpRequest

HOLDING: Final = "admission.add_audithold"


@dataclass(frozen=True, slots=True)
class NavigationItem:
    """A page of the navigation; ``current`` is a value of ``aria-current``, or empty."""

    key: str
    label: str
    icon: str
    address: str
    current: str = ""
    counts: bool = False
    """Whether scripts fill in how much work waits there."""


@dataclass(frozen=True, slots=True)
class NavigationGroup:
    """Items under one heading."""

    label: str
    items: Sequence[NavigationItem]


@dataclass(frozen=True, slots=True)
class Crumb:
    """A step from the navigation to the page; the last has no address."""

    label: str
    address: str = ""


@dataclass(frozen=True, slots=True)
class Shell:
    """What the frame of a page shows."""

    groups: Sequence[NavigationGroup]
    crumbs: Sequence[Crumb]
    is_top: bool
    """Whether the page is one of the navigation itself."""
    chosen: str
    choices: Sequence[ClusterChoice]
    zone: str
    account_tabs: Sequence[NavigationItem]
    can_look_back: bool = False
    """Whether the page can be shown as of an instant."""
    kept: Sequence[tuple[str, str]] = ()
    """The fields of the address that stay when an instant is chosen."""

    @property
    def query(self) -> str:
        """The chosen cluster as the end of an address."""
        return _query(self.chosen)


@dataclass(frozen=True, slots=True)
class _Page:
    """An item before it is known who looks: the route, and that of one cluster."""

    key: str
    label: str
    icon: str
    route: str
    of_cluster: str = ""
    counts: bool = False


_GROUPS: Final[tuple[tuple[str, tuple[_Page, ...]], ...]] = (
    (
        "Observe",
        (
            _Page("home", "Home", "home", "home"),
            _Page("decisions", "Decisions", "list", "decision-list"),
            _Page("quotas", "Quotas", "gauge", "quota-board", counts=True),
        ),
    ),
    (
        "Policies",
        (
            _Page("policies", "All policies", "file-text", "all-policies"),
            _Page("classes", "Classes", "template", "class-list"),
            _Page("changes", "Changes", "git-pull-request", "change-list"),
            _Page("tests", "Tests", "checklist", "kept-tests"),
            _Page("replays", "Replays", "player-track-prev", "replays"),
            _Page("history", "History", "history", "changes"),
            _Page("import", "Import", "download", "import-policies", "policy-import"),
        ),
    ),
    (
        "Fleet",
        (
            _Page("clusters", "Clusters", "stack-2", "cluster-list"),
            _Page("namespaces", "Namespaces", "box", "all-namespaces", "namespace-list"),
            _Page("drift", "Drift", "arrows-exchange", "drift", "cluster-objects", counts=True),
        ),
    ),
    (
        "Admin",
        (
            _Page("people", "People", "users", "people"),
            _Page("settings", "Settings", "settings", "admin:index"),
            _Page("api", "API", "api", "api-docs"),
        ),
    ),
)
_ITEM_OF_ROUTE: Final = (
    # The beginning of a route's name, the item that it belongs to; the first that fits.
    ("home", "home"),
    ("decision-", "decisions"),
    ("quota-", "quotas"),
    ("policy-import", "import"),
    ("import-policies", "import"),
    ("policy", "policies"),
    ("priority-class", "policies"),
    ("limited-resources", "policies"),
    ("all-policies", "policies"),
    ("class-", "classes"),
    ("replay", "replays"),
    ("kept-test", "tests"),
    ("changes", "history"),
    ("change", "changes"),
    ("cluster-object", "drift"),
    ("drift", "drift"),
    ("cluster-", "clusters"),
    ("namespace", "namespaces"),
    ("all-namespaces", "namespaces"),
    ("people", "people"),
    ("service-account", "people"),
    ("holds", "decisions"),
)
_ACCOUNT_ROUTES: Final = ("account", "service-account", "holds")


def shell_of(request: HttpRequest) -> Shell:
    """The frame for whoever asked; without a sign-in there is little in it."""
    match = request.resolver_match
    route = (match.url_name or "") if match else ""
    if not request.user.is_authenticated:
        zone = zone_label(zone_of(request))
        return Shell((), (), is_top=False, chosen="", choices=(), zone=zone, account_tabs=())
    chosen = chosen_cluster(request)
    groups = tuple(_groups(request.user, chosen, route, request.GET.get(AT, "")))
    crumbs = _crumbs(groups, route)
    return Shell(
        groups=groups,
        crumbs=crumbs,
        is_top=any(item.current == "page" for group in groups for item in group.items),
        chosen=chosen,
        choices=cluster_choices(request),
        zone=zone_label(zone_of(request)),
        account_tabs=tuple(_account_tabs(request.user, route))
        if route.startswith(_ACCOUNT_ROUTES)
        else (),
        can_look_back=route in PAST and AT not in request.GET,
        kept=[(name, str(value)) for name, value in request.GET.items() if name != AT],
    )


def _groups(user: Any, chosen: str, route: str, at: str) -> Iterator[NavigationGroup]:
    belongs_to = next((key for start, key in _ITEM_OF_ROUTE if route.startswith(start)), "")
    for label, pages in _GROUPS:
        items = [
            NavigationItem(
                page.key,
                page.label,
                page.icon,
                _address(page, user, chosen, at if page.route in PAST else ""),
                _current(page, belongs_to, route),
                page.counts,
            )
            for page in pages
            if _is_offered(page.key, user)
        ]
        if items:
            yield NavigationGroup(label, items)


def _is_offered(key: str, user: Any) -> bool:
    match key:
        case "classes":
            return roles.sees_all(user)
        case "people":
            return roles.may_somewhere(user, roles.GIVE_ROLES)
        case "settings":
            return bool(user.is_staff)
        case _:
            return True


def _address(page: _Page, user: Any, chosen: str, at: str) -> str:
    # Only somebody who sees the whole cluster may open the list of its objects.
    is_open = page.of_cluster != "cluster-objects" or roles.sees(user, chosen, "")
    if page.of_cluster and chosen and is_open:
        return reverse(page.of_cluster, args=[chosen]) + _query("", at)
    return reverse(page.route) + _query(chosen, at)


def _query(chosen: str, at: str = "") -> str:
    kept = {name: value for name, value in (("cluster", chosen), (AT, at)) if value}
    return f"?{urlencode(kept)}" if kept else ""


def _current(page: _Page, belongs_to: str, route: str) -> str:
    if page.key != belongs_to:
        return ""
    return "page" if route in {page.route, page.of_cluster} else "true"


def _crumbs(groups: Sequence[NavigationGroup], route: str) -> tuple[Crumb, ...]:
    """The group and the item, as far as the navigation leads; pages below add their own."""
    for group in groups:
        for item in group.items:
            if item.current:
                # What is observed needs no heading: its three pages are known by their names.
                before = () if group.label == "Observe" else (Crumb(group.label),)
                own = Crumb(item.label, "" if item.current == "page" else item.address)
                return (*before, own)
    return (Crumb("Account"),) if route.startswith(_ACCOUNT_ROUTES) else ()


def _account_tabs(user: Any, route: str) -> Iterator[NavigationItem]:
    """One's own account, and what else keeps credentials and records, as far as it opens."""
    tabs = [("account", "Account", "account", True)]
    tabs.append(
        (
            "service-accounts",
            "Service accounts",
            "service-account",
            roles.may(user, roles.KEEP_ACCOUNTS),
        )
    )
    tabs.append(("holds", "Legal holds", "holds", roles.may_somewhere(user, HOLDING)))
    for name, label, start, is_open in tabs:
        if is_open:
            current = "page" if route == name else "true" if route.startswith(start) else ""
            yield NavigationItem(name, label, "", reverse(name), current)
