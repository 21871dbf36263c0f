"""The pages of a policy's history: its revisions, comparison, restore."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any, Final

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import Http404
from django.shortcuts import redirect
from django.urls import reverse

from policies import services
from policies.drafts.draft import render
from policies.manifests import diff_in_words
from portal.pages.policies.page import PolicyPage, address_of, names_of, route_of

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from policies.models import PolicyRevision

ON_A_PAGE: Final = 25
LONGEST_LINE: Final = 4
"""Changes of one version that the list names; its own page has all."""


class RevisionsView(PolicyPage):
    """The versions of a policy, newest first; two of them can be compared."""

    template_name = "changes/versions.html"

    def may_post(self) -> bool:
        """Nothing is written from here."""
        return False

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """A page of versions, and the two that are to be compared."""
        history = self.history()
        if before := self._number("before"):
            history = history.filter(number__lt=before)
        found = list(history[: ON_A_PAGE + 1])
        if not found and self.manifest is None:
            raise Http404
        shown = found[:ON_A_PAGE]
        return super().get_context_data(
            **kwargs,
            versions=[self.line(each) for each in shown],
            older=shown[-1].number if len(found) > ON_A_PAGE else 0,
            is_deleted=self.manifest is None,
            compared=self._compared(),
        )

    def line(self, one: PolicyRevision) -> dict[str, Any]:
        """A version with what it changed, in words."""
        said = diff_in_words.changes(one.before, one.after)
        return {
            "revision": one,
            "changes": said[:LONGEST_LINE],
            "more": max(0, len(said) - LONGEST_LINE),
            "address": version_address(self, one.number),
        }

    def _number(self, name: str) -> int:
        text = self.request.GET.get(name, "")
        return int(text) if text.isdecimal() and len(text) < 19 else 0  # noqa: PLR2004 - 64 bits

    def _compared(self) -> dict[str, Any] | None:
        one, other = sorted((self._number("a"), self._number("b")))
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
    """One version: what it changed, the whole of it, and a way to have it back."""

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
        """Restoring is a change; of what is gone, an addition."""
        return self.may("change" if self.manifest is not None else "add")

    def post(self, request: HttpRequest, **_names: Any) -> HttpResponse:
        """Restore the version, for a reason."""
        one = self.find_revision()
        reason = request.POST.get("reason", "").strip()[:1000]
        if not reason:
            return self._refuse("Say why: the reason stays on record.")
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
