"""Pages of the navigation that lead to a page of one cluster: import."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from django.shortcuts import redirect
from django.urls import reverse

from portal.pages.shell.chosen import chosen_cluster, visible_clusters
from portal.pages.views import PortalPage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.http import HttpRequest
    from django.http.response import HttpResponseBase


@dataclass(frozen=True, slots=True)
class ClusterEntry:
    """A cluster with the address of its list, and how much there is to find."""

    cluster: str
    address: str
    number: int | None


class ClusterEntryPage(PortalPage):
    """A line for each cluster; with one chosen, or only one to see, its list at once."""

    template_name = "shell/entries.html"
    title: ClassVar[str] = ""
    about: ClassVar[str] = ""
    column: ClassVar[str] = ""
    """The heading of the numbers; without one there are none."""
    of_cluster: ClassVar[str] = ""
    names: list[str]

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:  # type: ignore[override]  # a redirection, too
        """Lead to the only cluster there is, or show all."""
        self.names = visible_clusters(request)
        chosen = chosen_cluster(request)
        asked = [chosen] if chosen in self.names else self.names
        if len(asked) == 1:
            return redirect(self.of_cluster, asked[0])
        return super().get(request, *args, **kwargs)

    def numbers(self) -> Mapping[str, int]:
        """How much there is in each cluster, as far as the reader sees it."""
        return {}

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The lines; a fixed number of queries for any number of clusters."""
        numbers = self.numbers()
        entries = [
            ClusterEntry(
                name,
                reverse(self.of_cluster, args=[name]),
                numbers.get(name, 0) if self.column else None,
            )
            for name in self.names
        ]
        return super().get_context_data(
            **kwargs, entries=entries, title=self.title, about=self.about, column=self.column
        )


class ImportEntry(ClusterEntryPage):
    """The import of policies into each cluster."""

    title, of_cluster = "Import policies", "policy-import"
    about = "An import writes into one cluster: choose it."
