"""The pages of history: all revisions, the versions of one policy, comparing and restoring them."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any, Final

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import Http404
from django.shortcuts import redirect
from django.urls import reverse

from policies import roles, services
from policies.drafts.draft import render
from policies.drafts.kinds import BY_NAME
from policies.manifests import diff_in_words
from policies.models import Cluster, Namespace, PolicyRevision
from portal.pages.policies.page import PolicyPage, address_of, names_of, route_of
from portal.pages.views import PortalPage, whole_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.models import QuerySet
    from django.http import HttpRequest, HttpResponse


ON_A_PAGE: Final = 25
LONGEST: Final = 253
LINES: Final = 4
"""Differences of one change that a list names; the change's page has all."""
FILTERS: Final = ("cluster", "namespace", "kind", "user")


class ChangesView(PortalPage):
    """The changes, newest first, a page at a time."""

    template_name = "changes/history.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The requested page of changes, and the filters."""
        asked = {
            name: self.request.GET.get(name, "").replace("\0", "").strip()[:LONGEST]
            for name in FILTERS
        }
        before = whole_number(self.request.GET.get("before", ""))
        rows = self.matching(asked)
        # A cursor and not a page number: offsets get slow, and new rows would shift the pages.
        # One row more than shown says whether there is an older page, without a count.
        found = list((rows.filter(pk__lt=before) if before else rows)[: ON_A_PAGE + 1])
        shown = found[:ON_A_PAGE]
        return super().get_context_data(
            **kwargs,
            lines=_lines(shown),
            asked=asked,
            is_asked=any(asked.values()),
            is_later=bool(before),
            kinds=sorted({*BY_NAME, "Cluster", "Namespace", "ClusterConnection"}),
            older=self._query(before=str(shown[-1].pk)) if len(found) > ON_A_PAGE else "",
            newest=self._query(),
        )

    def matching(self, asked: dict[str, str]) -> QuerySet[PolicyRevision]:
        """The visible revisions that match."""
        wanted = {name: text for name, text in asked.items() if text}
        rows = PolicyRevision.objects.filter(**wanted).order_by("-id")
        return roles.visible(rows, self.request.user, cluster="cluster", namespace="namespace")

    def _query(self, **more: str) -> str:
        query = self.request.GET.copy()
        query.pop("before", None)
        query.update(more)
        return query.urlencode()


def _lines(shown: Sequence[PolicyRevision]) -> list[dict[str, Any]]:
    """Each change in words; a policy that went with its namespace or cluster has no page."""
    clusters, spaces = {one.cluster for one in shown}, {one.namespace for one in shown}
    alive = {
        (name, "")
        for name in Cluster.objects.filter(name__in=clusters).values_list("name", flat=True)
    }
    alive |= set(
        Namespace.objects.filter(cluster__name__in=clusters, name__in=spaces).values_list(
            "cluster__name", "name"
        )
    )
    return [
        _line(one, _address(one) if (one.cluster, one.namespace) in alive else "") for one in shown
    ]


def _line(one: PolicyRevision, address: str) -> dict[str, Any]:
    """One change with the first of its differences in words, and the page that has all of them."""
    said = diff_in_words.changes(one.before, one.after)
    return {
        "revision": one,
        "changes": said[:LINES],
        "more": max(0, len(said) - LINES),
        "address": address,
    }


def _address(one: PolicyRevision) -> str:
    """The page of the version; empty for kinds without pages of versions."""
    kind = BY_NAME.get(one.kind)
    if kind is None or kind.is_namespaced is not bool(one.namespace):
        return ""
    names = names_of(kind, cluster=one.cluster, namespace=one.namespace, name=one.name)
    return reverse(f"{route_of(kind)}-revision", kwargs={**names, "number": one.number})


class RevisionsView(PolicyPage):
    """The versions of a policy, newest first; two of them can be compared."""

    template_name = "changes/versions.html"

    def may_post(self) -> bool:
        """Nothing is written from here."""
        return False

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """A page of versions, and the two that are to be compared."""
        history = self.history()
        if before := whole_number(self.request.GET.get("before", "")):
            history = history.filter(number__lt=before)
        found = list(history[: ON_A_PAGE + 1])
        if not found and self.manifest is None:
            raise Http404
        shown = found[:ON_A_PAGE]
        return super().get_context_data(
            **kwargs,
            versions=[_line(each, version_address(self, each.number)) for each in shown],
            older=shown[-1].number if len(found) > ON_A_PAGE else 0,
            is_deleted=self.manifest is None,
            compared=self._compared(),
        )

    def _compared(self) -> dict[str, Any] | None:
        one, other = sorted(whole_number(self.request.GET.get(name, "")) for name in ("a", "b"))
        if not one or one == other:
            return None
        found = {each.number: each for each in self.history().filter(number__in=(one, other))}
        if len(found) != len({one, other}):
            raise Http404
        return {
            "a": found[one],
            "b": found[other],
            "changes": diff_in_words.changes(found[one].after, found[other].after),
            "lines": diff_lines(found[one].after, found[other].after),
        }


class RevisionPageView(PolicyPage):
    """One version: its changes, its full text, and the form that restores it."""

    template_name = "changes/version.html"

    def find_revision(self) -> PolicyRevision:
        """The version that the address names."""
        found: PolicyRevision | None = self.history().filter(number=self.kwargs["number"]).first()
        if found is None:
            raise Http404
        return found

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The version in words, and line by line."""
        one = self.find_revision()
        whole = one.before if one.action == "delete" else one.after
        is_current = whole == self.manifest
        return super().get_context_data(
            **kwargs,
            version=one,
            changes=diff_in_words.changes(one.before, one.after),
            lines=diff_lines(one.before, one.after),
            text=render(whole) if whole else "",
            since=[] if is_current else diff_in_words.changes(self.manifest, whole),
            may_restore=bool(whole) and not is_current and self.may_post(),
            is_current=is_current,
        )

    def may_post(self) -> bool:
        """Restoring is a change, or an addition where the policy was deleted."""
        return self.may("change" if self.manifest is not None else "add")

    def post(self, request: HttpRequest, **_names: Any) -> HttpResponse:
        """Restore the version, for a reason."""
        one = self.find_revision()
        reason = request.POST.get("reason", "").strip()[:1000]
        if not reason:
            return self._refuse("Give a reason: it stays on record.")
        try:
            saved = services.restore_revision(revision=one, user=self.username, reason=reason)
        except ValidationError as error:
            return self._refuse(" ".join(error.messages))
        words_said = f"Version {one.number} is in force again."
        messages.success(request, words_said if saved.changed else "Nothing was changed.")
        return redirect(address_of(self.place))

    def _refuse(self, message: str) -> HttpResponse:
        return self.render_to_response(self.get_context_data(form_error=message), status=422)


def diff_lines(
    before: dict[str, Any] | None, after: dict[str, Any] | None
) -> list[tuple[str, str]]:
    """Two manifests line by line; a line is (``+``, ``-`` or a space, text)."""
    old, new = (render(one).splitlines() if one else [] for one in (before, after))
    lines = [line for line in difflib.ndiff(old, new) if not line.startswith("?")]
    return [(line[0], line[2:]) for line in lines]


def version_address(page: PolicyPage, number: int) -> str:
    """The page of one version."""
    place = page.place
    names = names_of(
        place.kind, cluster=place.cluster.name, namespace=page.namespace_name, name=place.name
    )
    return reverse(f"{route_of(place.kind)}-revision", kwargs={**names, "number": number})
