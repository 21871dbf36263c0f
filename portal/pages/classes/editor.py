"""ClassEditorView: a class as a form and as YAML, its impact, saved as a version or deleted."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final

from csp.constants import NONCE
from csp.decorators import csp_update
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.decorators import method_decorator

from policies import services
from policies.drafts.class_draft import ClassPlace
from policies.drafts.draft import render
from policies.drafts.forms import namespace_class
from policies.manifests import diff_in_words
from policies.models import NamespaceClass
from policies.plurals import counted
from portal.pages.classes.effects import effects_context
from portal.pages.classes.history import class_history
from portal.pages.classes.list import FleetPage
from portal.pages.policies.editor import LONGEST_REASON, NO_REASON
from portal.pages.policies.form_cells import fields_of, rows_of
from portal.pages.policies.panes.changed_cells import changed_cells
from portal.pages.policies.panes.differences import differences_of
from portal.pages.policies.state import EditorState, change_lines, read_state
from portal.pages.views import whole_number

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

UNREADABLE: Final = "The class has problems: correct them first."
OVERTAKEN: Final = (
    "The class was saved in the meantime. The changes are now compared with that version: "
    "review them, then save again."
)
DELETIONS: Final = "So many policies would be deleted that a person must confirm it:"
EXAMPLE_NAME: Final = "standard"
EXAMPLE: Final = """\
apiVersion: policy.gatehouse.dev/v1alpha1
kind: NamespaceClass
metadata:
  name: standard
spec:
  selector:
    names: ["team-*"]
  parameters:
  - name: cpu
    type: quantity
    default: "500m"
  policies:
  - apiVersion: v1
    kind: LimitRange
    metadata:
      name: defaults
    spec:
      limits:
      - type: Container
        default: {cpu: "$(cpu)"}
  onLeave: keep
"""


@method_decorator(csp_update({"style-src": [NONCE]}), name="dispatch")
class ClassEditorView(FleetPage):
    """The editor of a stored class; its parts are those of the editor of policies."""

    template_name = "classes/editor.html"
    is_new: ClassVar[bool] = False
    stored: NamespaceClass | None = None

    def find(self, names: dict[str, Any]) -> None:
        """Find the class, or 404."""
        super().find(names)
        self.stored = get_object_or_404(NamespaceClass, name=names["name"])

    @cached_property
    def place(self) -> ClassPlace:
        """What is edited."""
        return ClassPlace(name=self.stored.name if self.stored else "")

    @property
    def current(self) -> dict[str, Any]:
        """The stored manifest, or the example's."""
        if self.stored is not None:
            return self.stored.to_manifest()
        return self.place.read_text(self.example, is_checked=False).manifest or {}

    @cached_property
    def example(self) -> str:
        """What a new class begins with, under a name that no other one has."""
        names = NamespaceClass.objects.filter(name__startswith=EXAMPLE_NAME)
        taken = set(names.values_list("name", flat=True))
        numbered = (f"{EXAMPLE_NAME}-{number}" for number in range(2, len(taken) + 3))
        free = next(each for each in (EXAMPLE_NAME, *numbered) if each not in taken)
        return EXAMPLE.replace(f"name: {EXAMPLE_NAME}\n", f"name: {free}\n")

    @property
    def reason(self) -> str:
        """The reason that was given."""
        return self.request.POST.get("reason", "").strip()[:LONGEST_REASON]

    @property
    def written_by(self) -> dict[str, Any]:
        """Who writes, why, on which version, and the number of deletions that were agreed to."""
        sent = self.request.POST
        return {
            "user": self.username,
            "reason": self.reason,
            "expected_version": whole_number(sent.get("seen", "")),
            "confirmed": whole_number(sent.get("confirm", "").strip()),
        }

    def stored_state(self) -> EditorState:
        """The editor as it opens, with the stored class."""
        draft = self.place.draft_of(self.current)
        return EditorState(draft=draft, shown=draft.text)

    def get(self, *_args: Any, **_kwargs: Any) -> HttpResponse:
        """Show the stored class."""
        return self.answer(self.stored_state())

    def post(self, request: HttpRequest, *_args: Any, **_kwargs: Any) -> HttpResponse:
        """Do the button's action; without one, check the draft."""
        button = request.POST.get("do", "")
        if button == "delete" and self.stored is not None:
            return self._delete(self.stored)
        state = read_state(self.place, request.POST, self.current)
        if button.partition(":")[0] in {"add", "drop", "use"}:
            state = change_lines(self.place, state, button, self.current)
        if button == "save":
            return self._try_to_save(state)
        if not state.draft.is_fine:
            error = {"impact_error": UNREADABLE} if button == "impact" else {}
            return self.answer(state, status=422, **error)
        if button == "ask":
            return self.answer(state, **self._effects(state), is_asked=True)
        return self.answer(state, **(self._effects(state) if button == "impact" else {}))

    def _effects(self, state: EditorState) -> dict[str, Any]:
        """What saving would do; where it deletes many policies, the number to be typed."""
        preview = services.preview_class(state.draft.manifest)
        found = effects_context(preview)
        if preview.needs_confirmation:
            found |= {"dangers": [f"{counted(found['removals'], 'policies')} of this class"]}
        return {
            **found,
            "confirm_word": str(found["removals"]),
            "confirm_what": "the number of policies",
            "dangers_title": DELETIONS,
        }

    def _try_to_save(self, state: EditorState) -> HttpResponse:
        if not state.draft.is_fine:
            return self.answer(state, status=422)
        if not self.reason:
            return self._ask_again(state, NO_REASON)
        try:
            saved = services.save_class(manifest=state.draft.manifest, **self.written_by)
        except services.StaleRevisionError:
            newest = NamespaceClass.objects.filter(name=self.place.name).first()
            self.stored = newest or self.stored
            seen = newest.version if newest else 0
            return self._ask_again(state, OVERTAKEN, status=409, seen=seen)
        except ValidationError as error:
            return self._ask_again(state, error.messages[0])
        if not saved.changed:
            messages.info(self.request, "Nothing was changed.")
            return redirect("class-page", saved.instance.name)
        given = saved.given
        messages.success(
            self.request,
            f"Saved as version {saved.instance.version}: {given.made} made, "
            f"{given.changed} changed, {given.removed} removed.",
        )
        return redirect("class-page", saved.instance.name)

    def _ask_again(
        self, state: EditorState, error: str, *, status: int = 422, **more: Any
    ) -> HttpResponse:
        effects = self._effects(state)
        return self.answer(state, status=status, **effects, **more, form_error=error, is_asked=True)

    def _delete(self, stored: NamespaceClass) -> HttpResponse:
        if not self.reason:
            return self.answer(self.stored_state(), status=422, delete_error=NO_REASON)
        try:
            given = services.delete_class(stored=stored, **self.written_by)
        except services.StaleRevisionError:
            seen = stored.version
            return self.answer(self.stored_state(), status=409, is_stale=True, seen=seen)
        except ValidationError as error:
            removals = len(services.preview_deletion(stored).having("remove"))
            self.find(self.kwargs)  # the preview has emptied the class that it was given
            return self.answer(
                self.stored_state(),
                status=422,
                delete_error=error.messages[0],
                delete_removals=removals,
            )
        messages.success(self.request, f"Deleted, with {given.removed} of its policies.")
        return redirect("class-list")

    def answer(self, state: EditorState, *, status: int = 200, **more: Any) -> HttpResponse:
        """The page, or for a script the part that changes."""
        context = self.get_context_data(**self._outcome(state), **more, state=state)
        if self.request.headers.get("HX-Request") != "true":
            context |= {"history": class_history(self.stored)}
            return self.render_to_response(context, status=status)
        is_impact = self.request.POST.get("do") == "impact"
        self.template_name = (
            "classes/editor/_impact.html" if is_impact else "policies/editor/_answer.html"
        )
        # Status 200 even for findings: htmx swaps no other.
        return self.render_to_response({**context, "is_script": True})

    def _outcome(self, state: EditorState) -> dict[str, Any]:
        """The context of the draft: form, findings, changes, the namespaces that it matches."""
        draft, stored = state.draft, self.stored.to_manifest() if self.stored else None
        is_fine = draft.is_fine and draft.manifest is not None
        return {
            "draft": draft,
            "changes": diff_in_words.changes(stored, draft.manifest) if is_fine else [],
            "differences": differences_of(render(stored) if stored else "", draft.text),
            "changed_cells": changed_cells(self.place, draft, stored),
            "matches": services.matched_namespaces(draft.manifest or {}) if is_fine else None,
            "form": draft.sheet
            and {group: rows_of(group, draft, {}) for group in self.place.kind.groups},
            "fields": fields_of(self.place.kind, draft),
            "types": namespace_class.TYPES,
            "leaving": namespace_class.LEAVING.items(),
            "begun": tuple(namespace_class.BEGUN),
            "do": self.request.POST.get("do", ""),
            "reason": self.reason,
        }

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The names that the parts of the editor of policies use."""
        page = super().get_context_data()
        stored, is_sent = self.stored, self.request.method == "POST"
        version = stored.version if stored else 0
        return {
            **page,
            "kind": self.place.kind,
            "name": self.place.name,
            "stored": stored,
            "is_new": self.is_new,
            "revision": version,
            "revision_word": "version",
            "seen": whole_number(self.request.POST.get("seen", "")) if is_sent else version,
            "may_delete": stored is not None and page["may_write"],
            "here": self.request.path,
            "impact_pane": "classes/editor/_impact.html",
            "unnamed": "the class",
            "revisions_address": reverse("class-page", args=[stored.name]) if stored else "",
            **kwargs,
        }


class NewClassView(ClassEditorView):
    """The editor of a class that is not stored yet; begins with an example."""

    is_new = True

    def find(self, names: dict[str, Any]) -> None:
        """There is nothing to find."""
        super(ClassEditorView, self).find(names)

    def stored_state(self) -> EditorState:
        """The example, as its author wrote it."""
        draft = self.place.read_text(self.example, is_checked=False)
        return EditorState(draft=draft, shown=draft.text)
