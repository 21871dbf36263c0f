"""History pages of PolicyRevisions: ChangesView with filters, versions compared, one restored."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any, Final

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.db.models import Q
from django.http import Http404
from django.shortcuts import redirect
from django.urls import reverse

from policies import roles, services
from policies.drafts.draft import render
from policies.manifests import diff_in_words
from policies.models import Cluster, Namespace, PolicyRevision
from portal.pages.changes.facets import FACETS, ChangeCounts, change_facets
from portal.pages.policies.page import PolicyPage, address_of
from portal.pages.views import PortalPage, names_of, revision_address, route_of, whole_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.models import QuerySet
    from django.http import HttpRequest, HttpResponse


ON_A_PAGE: Final = 25
LONGEST_FILTER: Final = 253
DIFFERENCES_SHOWN: Final = 4
"""Differences of one change that a list names; the change's page has all."""
COUNTED: Final = 10_000
"""Of so many changes, the newest, the facets count."""


class ChangesView(PortalPage):
    """The changes, newest first, a page at a time."""

    template_name = "changes/history.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The requested page of changes, and the filters."""
        asked = {
            name: self.request.GET.get(name, "").replace("\0", "").strip()[:LONGEST_FILTER]
            for name in (*FACETS, "words")
        }
        beyond = whole_number(self.request.GET.get("before", ""))
        revisions = self.matching(asked)
        # A cursor and not a page number: offsets get slow, and new rows would shift the pages.
        # One row more than shown says whether there is an older page, without a count.
        found = list((revisions.filter(pk__lt=beyond) if beyond else revisions)[: ON_A_PAGE + 1])
        shown_revisions = found[:ON_A_PAGE]
        counts = self.counts(asked)
        return super().get_context_data(
            **kwargs,
            lines=_revision_lines(shown_revisions, self.request.user),
            asked=asked,
            is_asked=any(asked.values()),
            is_later=bool(beyond),
            facets=change_facets(asked, counts),
            filters_chosen=sum(bool(asked[name]) for name in FACETS),
            total=counts.total,
            is_cut=counts.is_cut,
            kept=[(name, asked[name]) for name in FACETS],
            older=self._query(before=str(shown_revisions[-1].pk)) if len(found) > ON_A_PAGE else "",
            newest=self._query(),
        )

    def matching(self, asked: dict[str, str]) -> QuerySet[PolicyRevision]:
        """The visible revisions that match."""
        wanted = Q(**{name: asked[name] for name in FACETS if asked[name]})
        for word in asked["words"].split():
            wanted &= Q(name__icontains=word) | Q(reason__icontains=word)
        revisions = PolicyRevision.objects.filter(wanted).order_by("-id")
        return roles.visible(revisions, self.request.user, cluster="cluster", namespace="namespace")

    def counts(self, asked: dict[str, str]) -> ChangeCounts:
        """The newest changes by the fields of the facets; one query."""
        anything = {**asked, **dict.fromkeys(FACETS, "")}
        newest = self.matching(anything).values_list(*FACETS)[: COUNTED + 1]
        return ChangeCounts.of(list(newest), asked, most=COUNTED)

    def _query(self, **more: str) -> str:
        history_query = self.request.GET.copy()
        history_query.pop("before", None)
        history_query.update(more)
        return history_query.urlencode()


def _revision_lines(shown: Sequence[PolicyRevision], user: Any) -> list[dict[str, Any]]:
    """Each change in words; a policy that went with its namespace or cluster has no page."""
    cluster_names, namespaces = {one.cluster for one in shown}, {one.namespace for one in shown}
    living = {
        (name, "")
        for name in Cluster.objects.filter(name__in=cluster_names).values_list("name", flat=True)
    }
    living |= set(
        Namespace.objects.filter(cluster__name__in=cluster_names, name__in=namespaces).values_list(
            "cluster__name", "name"
        )
    )
    lines = []
    for one in shown:
        line = _line(one, revision_address(one) if (one.cluster, one.namespace) in living else "")
        lines.append({**line, "restore": _restoring_page(one, user) if line["address"] else ""})
    return lines


def _restoring_page(one: PolicyRevision, user: Any) -> str:
    """The page that restores what was before a change; empty for those who may not, or for none."""
    is_deletion = one.action == PolicyRevision.Action.DELETE
    if not one.before or (one.number == 1 and not is_deletion):
        return ""
    permission = roles.writing(one.kind, "add" if is_deletion else "change")
    if not roles.may(user, permission, cluster=one.cluster, namespace=one.namespace):
        return ""
    return f"{revision_address(one, 0 if is_deletion else 1)}#restore"


def _line(revision: PolicyRevision, address: str) -> dict[str, Any]:
    """One change with the first of its differences in words, and the page that has all of them."""
    changes_said = diff_in_words.changes(revision.before, revision.after)
    return {
        "revision": revision,
        "changes": changes_said[:DIFFERENCES_SHOWN],
        "more": max(0, len(changes_said) - DIFFERENCES_SHOWN),
        "address": address,
    }


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
        found_versions = list(history[: ON_A_PAGE + 1])
        if not found_versions and self.manifest is None:
            raise Http404
        shown_versions = found_versions[:ON_A_PAGE]
        return super().get_context_data(
            **kwargs,
            versions=[_line(each, version_address(self, each.number)) for each in shown_versions],
            older=shown_versions[-1].number if len(found_versions) > ON_A_PAGE else 0,
            is_deleted=self.manifest is None,
            compared=self._compared(),
        )

    def _compared(self) -> dict[str, Any] | None:
        older, newer = sorted(whole_number(self.request.GET.get(name, "")) for name in ("a", "b"))
        if not older or older == newer:
            return None
        versions = {each.number: each for each in self.history().filter(number__in=(older, newer))}
        if len(versions) != len({older, newer}):
            raise Http404
        return {
            "a": versions[older],
            "b": versions[newer],
            "changes": diff_in_words.changes(versions[older].after, versions[newer].after),
            "lines": diff_lines(versions[older].after, versions[newer].after),
        }


class RevisionPageView(PolicyPage):
    """One version: its changes, its full text, and the form that restores it."""

    template_name = "changes/version.html"

    def find_revision(self) -> PolicyRevision:
        """The version that the address names."""
        version: PolicyRevision | None = self.history().filter(number=self.kwargs["number"]).first()
        if version is None:
            raise Http404
        return version

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The version in words, and line by line."""
        version = self.find_revision()
        version_manifest = version.before if version.action == "delete" else version.after
        is_current = version_manifest == self.manifest
        return super().get_context_data(
            **kwargs,
            version=version,
            changes=diff_in_words.changes(version.before, version.after),
            lines=diff_lines(version.before, version.after),
            text=render(version_manifest) if version_manifest else "",
            since=[] if is_current else diff_in_words.changes(self.manifest, version_manifest),
            may_restore=bool(version_manifest) and not is_current and self.may_post(),
            is_current=is_current,
        )

    def may_post(self) -> bool:
        """Restoring is a change, or an addition where the policy was deleted."""
        return self.may("change" if self.manifest is not None else "add")

    def post(self, request: HttpRequest, **_names: Any) -> HttpResponse:
        """Restore the version, for a reason."""
        version = self.find_revision()
        reason = request.POST.get("reason", "").strip()[:1000]
        if not reason:
            return self._refuse("Give a reason: it stays on record.")
        try:
            saved = services.restore_revision(revision=version, user=self.username, reason=reason)
        except ValidationError as error:
            return self._refuse(" ".join(error.messages))
        restored_words = f"Version {version.number} is in force again."
        messages.success(request, restored_words if saved.changed else "Nothing was changed.")
        return redirect(address_of(self.place))

    def _refuse(self, message: str) -> HttpResponse:
        return self.render_to_response(self.get_context_data(form_error=message), status=422)


def diff_lines(
    before: dict[str, Any] | None, after: dict[str, Any] | None
) -> list[tuple[str, str]]:
    """Two manifests line by line; a line is (``+``, ``-`` or a space, text)."""
    old_lines, new_lines = (render(one).splitlines() if one else [] for one in (before, after))
    ndiff_lines = [line for line in difflib.ndiff(old_lines, new_lines) if not line.startswith("?")]
    return [(line[0], line[2:]) for line in ndiff_lines]


def version_address(page: PolicyPage, number: int) -> str:
    """The page of one version."""
    place = page.place
    version_names = names_of(
        place.kind, cluster=place.cluster.name, namespace=page.namespace_name, name=place.name
    )
    return reverse(f"{route_of(place.kind)}-revision", kwargs={**version_names, "number": number})
