"""EditorView of a draft: form, YAML, unsaved draft kept, saved with a reason, conflict, dangers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Final

from csp.constants import NONCE
from csp.decorators import csp_update
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import Http404
from django.shortcuts import redirect
from django.utils.decorators import method_decorator
from django.utils.functional import cached_property

from engine.policy import Enforcement
from policies import services
from policies.drafts import danger, preview
from policies.drafts.draft import (
    LONGEST,
    Draft,
    Finding,
    draft_of_manifest,
    drop_draft,
    keep_draft,
    kept_draft_of,
    kept_parts,
    render,
)
from policies.drafts.kinds import LIMITED_RESOURCES
from policies.manifests import diff_in_words
from policies.models import Namespace
from policies.plurals import counted
from policies.validators import findings_of
from portal.pages.policies.form_cells import form_context
from portal.pages.policies.page import PolicyPage, address_of
from portal.pages.policies.panes import proposals
from portal.pages.policies.panes.changed_cells import changed_cells
from portal.pages.policies.panes.conflict import conflict_of
from portal.pages.policies.panes.differences import differences_of
from portal.pages.policies.panes.history import history_of
from portal.pages.policies.panes.kept import kept_results
from portal.pages.policies.panes.labels import label_choices
from portal.pages.policies.panes.observation import observed_by
from portal.pages.policies.panes.places import PolicyPlaces, no_others, other_places, read_places
from portal.pages.policies.panes.trial import choices, trial
from portal.pages.policies.state import EditorState, change_lines, read_state
from portal.pages.views import whole_number

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.http import HttpRequest, HttpResponse, QueryDict

    from policies.drafts.draft import PolicyPlace
    from policies.models import KeptDraft

LONGEST_REASON: Final = 1000
PROMOTE: Final = "promote"
"""The button that sets the mode to enforce, and asks as Save does."""
PROPOSE_DELETION: Final = "propose-deletion"
DELETIONS: Final = ("delete", PROPOSE_DELETION)
NO_REASON: Final = "Give a reason: it stays on record."


@method_decorator(csp_update({"style-src": [NONCE]}), name="dispatch")
class EditorView(PolicyPage):
    """The editor of a stored policy."""

    template_name = "policies/editor.html"
    is_new: ClassVar[bool] = False
    written = 0
    """In how many namespaces a policy of several was changed."""

    def may_post(self) -> bool:
        """Those who may not write see the policy without a form."""
        is_deletion = self.request.POST.get("do") in DELETIONS
        return self.may("delete" if is_deletion else "add" if self.is_new else "change")

    def get(self, request: HttpRequest, *_args: Any, **_kwargs: Any) -> HttpResponse:
        """Show the stored policy, or the person's unsaved draft of it."""
        if self.manifest is None and not self.is_new:
            if self.history().exists():
                return redirect(self.get_context_data()["revisions_address"])
            raise Http404
        editor_state = self.stored_state()
        if "draft" in request.GET and self.kept_draft is not None:
            kept_fields = {"shown": editor_state.shown, "yaml": self.kept_draft.text}
            return self.answer(read_state(self.place, kept_fields, self.current))
        if self.is_new and editor_state.draft.sheet is not None:
            editor_state = self._begun(editor_state, request.GET.get("ready", ""))
        return self.answer(editor_state)

    def _begun(self, editor_state: EditorState, ready: str) -> EditorState:
        """A new policy begins with one empty line of its first group."""
        if not self.place.kind.groups:
            return editor_state
        button = f"ready:{ready}" if ready else f"add:{self.place.kind.groups[0]}"
        begun = change_lines(self.place, editor_state, button, self.current)
        # Without findings: an empty line that nobody typed yet is no mistake.
        quiet_draft = Draft(text=begun.draft.text, manifest=self.current, sheet=begun.draft.sheet)
        return EditorState(draft=quiet_draft, shown=begun.shown)

    def stored_state(self) -> EditorState:
        """The editor as it opens, with the stored policy."""
        draft = draft_of_manifest(self.place, self.current)
        return EditorState(draft=draft, shown=draft.text)

    @property
    def current(self) -> dict[str, Any]:
        """The stored manifest, or a blank one."""
        return self.manifest or self.place.kind.blank(self.namespace_name)

    def post(self, request: HttpRequest, *_args: Any, **_kwargs: Any) -> HttpResponse:
        """Do the button's action; without one, check the draft."""
        button = request.POST.get("do", "")
        if button in DELETIONS:
            return self._propose_deletion() if button == PROPOSE_DELETION else self._delete()
        if button == "forget":
            drop_draft(self.user, self.place)
            return redirect(self.here)
        editor_state = self.read(request.POST)
        if button == PROMOTE:
            button, change = "ask", f"use:enforcement:{Enforcement.ENFORCE.value}"
            editor_state = change_lines(self.place, editor_state, change, self.current)
        elif button.partition(":")[0] in {"add", "drop", "ready", "use"}:
            editor_state = change_lines(self.place, editor_state, button, self.current)
        self._keep(editor_state)
        if button == "ask" and editor_state.draft.is_fine and not self.places.problems:
            return self.answer(editor_state, dangers=self._dangers(editor_state), is_asked=True)
        steps = {"save": self._try_to_save, "propose": self._propose}
        return steps.get(button, self.answer)(editor_state)

    def _try_to_save(self, editor_state: EditorState) -> HttpResponse:
        """Save a valid draft with a reason, once its author has confirmed its dangers."""
        if not editor_state.draft.is_fine or self.places.problems:
            return self.answer(editor_state, status=422)
        if not self.reason:
            return self.answer(editor_state, status=422, form_error=NO_REASON, is_asked=True)
        dangers = self._dangers(editor_state)
        is_confirmed = self.request.POST.get("confirm", "").strip() == self.confirm_word
        if dangers and not is_confirmed:
            return self.answer(editor_state, status=422, dangers=dangers, is_asked=True)
        return self._save(editor_state)

    def _propose(self, editor_state: EditorState) -> HttpResponse:
        """Put a valid draft into a change, in place of saving it."""
        if not editor_state.draft.is_fine or self.places.problems or not self.namespace_name:
            return self.answer(editor_state, status=422)
        try:
            change = proposals.put_draft(self, editor_state.draft.manifest or {})
        except proposals.REFUSALS as error:
            said: dict[str, Any] = {"form_error": proposals.words_of(error), "is_asked": True}
            return self.answer(editor_state, status=422, **said)
        drop_draft(self.user, self.place)
        messages.success(self.request, proposals.ADDED)
        return redirect("change", change.pk)

    @property
    def confirm_word(self) -> str:
        """What is typed to save in spite of dangers."""
        return danger.word_for(self.endangered or [self.namespace_name])

    @property
    def user(self) -> User:
        """Who is signed in."""
        user: User = self.request.user  # type: ignore[assignment]  # nobody else comes in
        return user

    @cached_property
    def kept_draft(self) -> KeptDraft | None:
        """The person's unsaved draft, if it differs from the stored policy."""
        kept = kept_draft_of(self.user, self.place) if self.may_post() else None
        return kept if kept and kept.text != render(self.current) else None

    @property
    def _shown_draft(self) -> KeptDraft | None:
        """The unsaved draft, if it is the one that the page shows."""
        is_shown = self.request.method == "POST" or "draft" in self.request.GET
        return self.kept_draft if is_shown else None

    def _keep(self, editor_state: EditorState) -> None:
        """Keep the draft if it differs from the stored policy."""
        draft_text = editor_state.draft.text
        if draft_text.strip() == render(self.current).strip() or len(draft_text) > LONGEST:
            drop_draft(self.user, self.place)
        else:
            keep_draft(self.user, self.place, draft_text, seen=self.seen)

    @cached_property
    def places(self) -> PolicyPlaces:
        """The namespaces that the draft is saved in."""
        data = self.request.POST if self.request.method == "POST" else self.request.GET
        may_ask = self.may_post() and self.request.user.is_authenticated
        return read_places(self.place, data, self.user) if may_ask else no_others(self.place)

    @cached_property
    def endangered(self) -> dict[str, list[str]]:
        """The running work that saving would stop, by namespace."""
        return {}

    def _dangers(self, editor_state: EditorState) -> list[str]:
        """The running work that saving would stop, in words."""
        manifest = editor_state.draft.manifest
        if manifest is None or self.place.namespace is None:
            return []
        for namespace in self.places.all:
            place = self.place_in(namespace)
            before = preview.load(place)
            lints = [hint.lint for hint in preview.hints(place, manifest, before)]
            if found := danger.dangers_of(place, manifest, before, lints):
                self.endangered[namespace] = found
        is_many = self.places.is_many
        return [
            f"{namespace}: {words}" if is_many else words
            for namespace, found in self.endangered.items()
            for words in found
        ]

    def place_in(self, namespace: str) -> PolicyPlace:
        """The same policy in another namespace."""
        if namespace == self.namespace_name:
            return self.place
        home = Namespace(cluster=self.cluster, name=namespace)
        return replace(self.place, namespace=home)

    def read(self, data: QueryDict) -> EditorState:
        """The draft that was sent, from the form or the YAML."""
        return read_state(self.place, data, self.current)

    @property
    def here(self) -> str:
        """The address that the form is sent to."""
        return self.request.path

    @property
    def reason(self) -> str:
        """The reason that was given."""
        return self.request.POST.get("reason", "").strip()[:LONGEST_REASON]

    @property
    def seen(self) -> int:
        """The revision on which the draft is based."""
        return whole_number(self.request.POST.get("seen", ""))

    def _save(self, state: EditorState) -> HttpResponse:
        manifest = state.draft.manifest or {}
        try:
            saved_policy = self._write(manifest)
        except services.StaleRevisionError:
            return self._conflict(state)
        except services.ApprovalRequiredError as error:
            return self.answer(state, status=409, form_error=error.messages[0], is_asked=True)
        except ValidationError as error:
            findings = tuple(Finding(message=finding.messages[0]) for finding in findings_of(error))
            refused_draft = Draft(
                text=state.draft.text, manifest=manifest, sheet=state.draft.sheet, findings=findings
            )
            return self.answer(EditorState(draft=refused_draft, shown=state.shown), status=422)
        drop_draft(self.user, self.place)  # the draft has become the stored version
        if self.written:
            words = counted(self.written, "namespaces")
            messages.success(
                self.request, f"Saved in {words}. It applies from the next decision on."
            )
        elif saved_policy.changed:
            messages.success(self.request, "Saved. It applies from the next decision on.")
        else:
            messages.info(self.request, "Nothing was changed.")
        policy_name = (manifest.get("metadata") or {}).get("name", "")
        return redirect(address_of(replace(self.place, name=policy_name)))

    def _write(self, manifest: dict[str, Any]) -> services.Saved:
        if self.places.is_many:
            saved = services.apply_in_namespaces(
                cluster=self.cluster,
                manifest=manifest,
                namespaces=self.places.all,
                user=self.username,
                reason=self.reason,
                expected_revisions={self.namespace_name: self.seen},
            )
            self.written = sum(each.changed for each in saved.values())
            return saved[self.namespace_name]
        if self.place.kind is not LIMITED_RESOURCES:
            return services.apply_manifest(
                cluster=self.cluster,
                manifest=manifest,
                expected_revision=self.seen,
                user=self.username,
                reason=self.reason,
            )
        with services.policy_write(self.cluster):
            # Under the lock of the write: a check before it would race with another save.
            if self.revision != self.seen:
                raise services.StaleRevisionError(expected=self.seen, found=self.revision)
            entries = manifest["limitedResources"]
            return services.set_limited_resources(
                cluster=self.cluster, entries=entries, user=self.username, reason=self.reason
            )

    def _delete(self) -> HttpResponse:
        if self.stored is None:
            raise Http404
        if not self.reason:
            return self.answer(self.stored_state(), status=422, form_error=NO_REASON)
        author: Any = {"user": self.username, "reason": self.reason, "expected_revision": self.seen}
        try:
            if self.place.kind.is_namespaced:
                services.delete_policy(policy=self.stored, **author)
            else:
                services.delete_priority_class(priority_class=self.stored, **author)
        except services.StaleRevisionError:
            return self.answer(self.stored_state(), status=409, is_stale=True, seen=self.revision)
        except services.ApprovalRequiredError as error:
            return self.answer(self.stored_state(), status=409, form_error=error.messages[0])
        drop_draft(self.user, self.place)
        messages.success(self.request, "Deleted. It can be restored from here.")
        return redirect(self.get_context_data()["revisions_address"])

    def _propose_deletion(self) -> HttpResponse:
        """Put the deletion into a change, in place of deleting it."""
        if self.stored is None or not self.place.kind.is_namespaced:
            raise Http404
        try:
            change = proposals.put_deletion(self)
        except proposals.REFUSALS as error:
            refusal = proposals.words_of(error)
            return self.answer(self.stored_state(), status=422, form_error=refusal)
        messages.success(self.request, proposals.ADDED)
        return redirect("change", change.pk)

    def _conflict(self, state: EditorState) -> HttpResponse:
        """Another save came first: show both changes and their merge."""
        conflict_context = self.get_context_data(
            **conflict_of(self, state.draft.manifest or {}),
            mine_text=state.draft.text,
            reason=self.reason,
        )
        self.template_name = "policies/conflict.html"
        return self.render_to_response(conflict_context, status=409)

    def answer(self, state: EditorState, *, status: int = 200, **more_context: Any) -> HttpResponse:
        """The page, or for a script the part that changes."""
        editor_context = self.get_context_data(
            **{**self.outcome(state), **more_context, "state": state}
        )
        # Without scripts the form is sent as a whole and gets a whole page.
        if self.request.headers.get("HX-Request") != "true":
            editor_context |= {"history": history_of(self), **label_choices(self)}
            editor_context["observed"] = observed_by(self)
            if self.may_post():
                editor_context |= choices(self.request, self.place, state.draft)
                editor_context["open_changes"] = proposals.open_changes(self.user)
            return self.render_to_response(editor_context, status=status)
        self.template_name = self.script_template()
        # Status 200 even for findings: htmx swaps no other.
        return self.render_to_response(editor_context)

    def script_template(self) -> str:
        """The parts of the page that a script fetches."""
        return "policies/editor/_answer.html"

    def outcome(self, state: EditorState) -> dict[str, Any]:
        """The context of the draft: findings, changes, warnings, the trial."""
        draft, button = state.draft, self.request.POST.get("do", "")
        draft_context: dict[str, Any] = {
            "draft": draft,
            "kept": kept_parts(self.place, draft),
            "changes": diff_in_words.changes(self.manifest, draft.manifest)
            if draft.is_fine
            else [],
            "differences": differences_of(
                render(self.manifest) if self.manifest else "", draft.text
            ),
            "is_new": self.is_new,
            "reason": self.reason,
            "do": "ask" if button == PROMOTE else button,
            "kept_draft": self.kept_draft if self.request.method == "GET" else None,
            "saved_draft": self._shown_draft,
            "is_continued": "draft" in self.request.GET,
            "here": self.here,
            "confirm_word": self.confirm_word,
            "confirm_what": "the number of namespaces"
            if len(self.endangered) > 1
            else "the namespace's name",
            "places_changed": button.startswith("unplace:"),
            "places": self.places,
            "other_places": other_places(self.place, self.places, draft.manifest),
            "changed_cells": changed_cells(self.place, draft, self.manifest),
            # A page that is answered with keeps the base of its draft, whoever saved meanwhile.
            "seen": self.seen if self.request.method == "POST" else 0,
        }
        before = preview.load(self.place) if self.place.namespace else None
        if draft.is_fine and before is not None and draft.manifest is not None:
            draft_context["hints"] = preview.hints(self.place, draft.manifest, before)
        draft_context |= trial(self.request, self.place, draft, before)
        if self.may_post():
            draft_context |= kept_results(self.place, draft, before)
        return {**draft_context, "before": before, **form_context(self.place, draft, before)}
