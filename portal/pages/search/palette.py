"""FindView, the command palette: actions, pages and objects by words; FoundView, all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.urls import reverse

from policies import roles
from portal.pages.search.actions import find_actions
from portal.pages.search.entries import PaletteEntry, PaletteGroup
from portal.pages.search.objects import find_objects
from portal.pages.views import PortalPage

if TYPE_CHECKING:
    from collections.abc import Iterator

OF_A_KIND: Final = 6
"""Results shown of each kind; more letters narrow them down."""
ON_PAGE: Final = 100
"""The same on the page of all results."""
LONGEST_SEARCH: Final = 253
_PAGES: Final = (
    ("Home", "home", ""),
    ("Decisions", "decision-list", ""),
    ("Refusals", "decision-list", "verdict=denied"),
    ("Quotas", "quota-board", ""),
    ("Quotas that need attention", "quota-board", "needs=attention"),
    ("All policies", "all-policies", ""),
    ("History", "changes", ""),
    ("Import policies", "import-policies", ""),
    ("Clusters", "cluster-list", ""),
    ("Namespaces", "all-namespaces", ""),
    ("Drift", "drift", ""),
    ("Your account and tokens", "account", ""),
    ("API", "api-docs", ""),
)


def find(text: str, user: Any, most: int = OF_A_KIND) -> list[PaletteGroup]:
    """Groups of what the words name; without words, the pages."""
    words = text.strip()[:LONGEST_SEARCH]
    if "\0" in words:
        return []
    pages = list(_find_pages(words, user))
    actions = find_actions(words, user, most) if words else []
    groups = [
        PaletteGroup("Actions", "plus", actions, len(actions)),
        PaletteGroup("Pages", "file-text", pages, len(pages)),
        *(find_objects(words, user, most) if words else ()),
    ]
    return [group for group in groups if group.entries]


def _find_pages(words: str, user: Any) -> Iterator[PaletteEntry]:
    pages = list(_PAGES)
    if roles.may_somewhere(user, roles.GIVE_ROLES):
        pages.append(("People", "people", ""))
    if roles.sees_all(user):
        pages.append(("Namespace classes", "class-list", ""))
    if roles.may(user, "sync.add_clusterconnection"):
        pages.append(("Connect a cluster", "cluster-connect", ""))
    for name, route, query in pages:
        if words.casefold() in name.casefold():
            yield PaletteEntry(name, "page", reverse(route) + (f"?{query}" if query else ""))


class FindView(PortalPage):
    """The results as lines for the palette."""

    template_name = "search/_found.html"
    most = OF_A_KIND

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Add the groups of results and the words searched for."""
        words = self.request.GET.get("q", "")
        groups = find(words, self.request.user, self.most)
        total = sum(group.total for group in groups)
        shown = sum(len(group.entries) for group in groups)
        return super().get_context_data(
            **kwargs, groups=groups, words=words.strip(), total=total, has_more=total > shown
        )


class FoundView(FindView):
    """A page of all results, so many of each kind."""

    template_name = "search/found.html"
    most = ON_PAGE
