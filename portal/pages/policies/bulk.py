"""BulkView: an edit of the selected policies, shown, then saved; UndoView, PoliciesAsYaml."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import Http404, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse

from engine.policy import Enforcement
from policies import roles, services
from policies.drafts import bulk_edit
from policies.drafts.bulk_edit import Edit, EditPlan
from policies.drafts.bulk_import import OvertakenError
from policies.manifests.render import render_manifests
from policies.models import Cluster
from policies.plurals import counted
from portal.pages.policies.panes import proposals
from portal.pages.policies.selection import KINDS, PolicySelection, asked_by, key_of
from portal.pages.views import PortalPage, whole_number

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from django.http import HttpRequest

    PolicyKey = tuple[str, tuple[str, str, str]]

LINES_SHOWN: Final = 100
LONGEST_REASON: Final = 1000
LONGEST_NAMES: Final = 4000
NO_REASON: Final = "Give a reason: it stays on record."
NO_NAMESPACE: Final = "Name a namespace, or some: team-a team-b, or team-*."
OVERTAKEN: Final = "The changes are no longer those that were shown. Review them again, then save."
PARTS_OF_PICK: Final = 4


class SelectedPolicies(PortalPage):
    """A page about policies that were picked one by one, or all that a list asks for."""

    def may_post(self) -> bool:
        """Each policy is checked by itself."""
        return True

    @property
    def sent(self) -> QueryDict:
        """The fields: of a form, or of a link."""
        return self.request.POST if self.request.method == "POST" else self.request.GET

    @property
    def is_all(self) -> bool:
        """Whether all that the list asks for are meant, and not the picked ones."""
        return self.sent.get("all") == "1"

    def selected(self) -> list[PolicyKey]:
        """Cluster and key of each selected policy that the person may see."""
        if self.is_all:
            asked = asked_by(QueryDict(self.sent.get("asked", "")))
            rows = PolicySelection(self.request.user, asked).rows()
            return [
                (cluster, (kind, namespace, name))
                for cluster, kind, namespace, name in map(
                    key_of, rows[: bulk_edit.MOST_POLICIES + 1]
                )
            ]
        picks = [each.replace("\0", "").split("/", 3) for each in self.sent.getlist("pick")]
        return [
            (cluster, (kind, namespace, name))
            for cluster, kind, namespace, name in (p for p in picks if len(p) == PARTS_OF_PICK)
            if kind in KINDS and roles.sees(self.request.user, cluster, namespace)
        ]

    def may_write(self, action: str, cluster: str, key: tuple[str, str, str]) -> bool:
        """Whether the person may add, change or delete an object."""
        kind, namespace, _ = key
        permission = roles.writing(kind, action)
        return roles.may(self.request.user, permission, cluster=cluster, namespace=namespace)

    def list_address(self) -> str:
        """The list as it was asked for."""
        query = self.sent.get("asked", "")
        return reverse("all-policies") + (f"?{QueryDict(query).urlencode()}" if query else "")


class BulkView(SelectedPolicies):
    """An edit of many policies: what it changes, then a reason, then all of it is saved."""

    template_name = "policies/bulk.html"

    def get_template_names(self) -> list[str]:
        """Only the sheet, where a script asks for it."""
        return ["policies/_bulk.html" if self.is_sheet else self.template_name]

    @property
    def is_sheet(self) -> bool:
        """Whether a script of the list shows the answer in a dialog."""
        return self.request.headers.get("HX-Request") == "true"

    def get(self, request: HttpRequest, *_args: Any, **_kwargs: Any) -> HttpResponse:
        """Show what a link asks for."""
        return self.post(request)

    def post(self, request: HttpRequest, *_args: Any, **_kwargs: Any) -> HttpResponse:
        """Show the plan; with ``do=save``, carry it out."""
        edit, selected = self._edit(), self.selected()
        if edit is None:
            raise Http404
        if not selected:
            messages.info(request, "Select at least one policy.")
            return redirect(self.list_address())
        if len(selected) > bulk_edit.MOST_POLICIES:
            return self._show(
                edit, selected, EditPlan(), status=422,
                form_error=f"At most {bulk_edit.MOST_POLICIES:,} at once: narrow the list.",
            )  # fmt: skip
        shown = bulk_edit.plan(selected, edit, may=self.may_write)
        if request.method == "POST" and self.sent.get("do") == "propose":
            return self._propose(edit, selected, shown)
        if request.method != "POST" or self.sent.get("do") != "save":
            return self._show(edit, selected, shown)
        return self._save(edit, selected, shown)

    def _edit(self) -> Edit | None:
        action, _, mode = self.sent.get("act", "").partition(":")
        if action == "mode" and mode in tuple(Enforcement):
            return Edit(action="mode", mode=mode)
        if action == "delete":
            return Edit(action="delete")
        if action == "copy":
            names = self.sent.get("namespaces", "")[:LONGEST_NAMES].replace("\0", "")
            return Edit(
                action="copy",
                namespaces=tuple(names.replace(",", " ").split()),
                name=self.sent.get("name", "").replace("\0", "").strip()[:253],
            )
        return None

    def _save(self, edit: Edit, selected: list[PolicyKey], shown: EditPlan) -> HttpResponse:
        if edit.action == "copy" and not edit.namespaces:
            return self._show(edit, selected, shown, status=422, form_error=NO_NAMESPACE)
        reason = self.sent.get("reason", "").strip()[:LONGEST_REASON]
        if not reason:
            return self._show(edit, selected, shown, status=422, form_error=NO_REASON)
        if shown.seen != self.sent.get("seen", ""):
            return self._show(edit, selected, shown, status=409, form_error=OVERTAKEN)
        dangers, word = bulk_edit.dangers_of(shown)
        if dangers and self.sent.get("confirm", "").strip() != word:
            return self._show(edit, selected, shown, status=422, dangers=dangers, word=word)
        try:
            batch = bulk_edit.save(shown, user=self.username, reason=reason)
        except (OvertakenError, services.ApprovalRequiredError) as error:
            is_overtaken = isinstance(error, OvertakenError)
            refusal = OVERTAKEN if is_overtaken else proposals.words_of(error)
            return self._show(edit, selected, shown, status=409, form_error=refusal)
        number = counted(len(shown.written), "policies")
        done = {"mode": f"{number} set to {edit.mode}", "copy": f"{number} written"}
        words = done.get(edit.action, f"{number} deleted")
        undo = urlencode({"of": [f"{name}:{at}" for name, at in batch]}, doseq=True)
        messages.success(
            self.request,
            f"{words}.",
            extra_tags=f"{reverse('policy-undo')}?{undo}" if batch else "",
        )
        return redirect(self.list_address())

    def _propose(self, edit: Edit, selected: list[PolicyKey], shown: EditPlan) -> HttpResponse:
        """Put the edit into a change, in place of saving it."""
        if shown.seen != self.sent.get("seen", ""):
            return self._show(edit, selected, shown, status=409, form_error=OVERTAKEN)
        title, reason = _title(edit, selected), self.sent.get("reason", "").strip()
        try:
            change = proposals.put_edit(self, shown, title=title, reason=reason[:LONGEST_REASON])
        except proposals.REFUSALS as error:
            refusal = proposals.words_of(error)
            return self._show(edit, selected, shown, status=422, form_error=refusal)
        messages.success(self.request, proposals.ADDED)
        return redirect("change", change.pk)

    def _show(
        self,
        edit: Edit,
        selected: list[PolicyKey],
        shown: EditPlan,
        *,
        status: int = 200,
        **more: Any,
    ) -> HttpResponse:
        written = shown.written
        context = self.get_context_data(
            edit=edit,
            title=_title(edit, selected),
            act=self.sent.get("act", ""),
            picks=[] if self.is_all else _picks(selected),
            is_all=self.is_all,
            asked_query=self.sent.get("asked", ""),
            back=self.list_address(),
            shown=shown,
            written=written[:LINES_SHOWN],
            more_written=max(0, len(written) - LINES_SHOWN),
            number=len(written),
            refused=shown.refused[:LINES_SHOWN],
            is_single=len(selected) == 1,
            namespaces=self.sent.get("namespaces", ""),
            name=self.sent.get("name", ""),
            reason=self.sent.get("reason", ""),
            button=_button(edit, len(written)),
            open_changes=proposals.open_changes(self.request.user),
            **more,
        )
        return self.render_to_response(context, status=status)


def _title(edit: Edit, selected: list[PolicyKey]) -> str:
    what = selected[0][1][2] if len(selected) == 1 else counted(len(selected), "policies")
    return {
        "mode": f"Set {what} to {edit.mode}",
        "copy": f"Apply {what} to namespaces",
        "delete": f"Delete {what}",
    }[edit.action]


def _button(edit: Edit, number: int) -> str:
    verb = {"mode": "Change", "copy": "Write", "delete": "Delete"}[edit.action]
    return f"{verb} {counted(number, 'policies')}"


def _picks(selected: Iterable[PolicyKey]) -> list[str]:
    return ["/".join((cluster, *key)) for cluster, key in selected]


class UndoView(SelectedPolicies):
    """Takes back an edit that this person has just saved; the button of its toast.

    ``?to=tests`` leads to the list of kept tests, where one was deleted.
    """

    def get(self, request: HttpRequest, *_args: Any, **_kwargs: Any) -> HttpResponse:  # noqa: ARG002 - as Django calls it
        """Lead to the list: an edit is taken back by its toast alone."""
        return redirect("all-policies")

    def post(self, request: HttpRequest, *_args: Any, **_kwargs: Any) -> HttpResponse:
        """Restore what each object was before, if nobody has written one since."""
        pairs = [each.rpartition(":") for each in request.GET.getlist("of")]
        batch = tuple((name, whole_number(number)) for name, _, number in pairs)
        try:
            done = bulk_edit.undo(batch, may=self.may_write, user=self.username)
        except OvertakenError:
            messages.error(request, "Not undone: one of the policies was changed since.")
        except PermissionError:
            messages.error(request, "Not undone: your role no longer allows it.")
        except ValidationError as error:
            messages.error(request, f"Not undone: {' '.join(error.messages)}")
        else:
            what = "tests" if self.is_of_tests else "policies"
            messages.success(request, f"{counted(done, what)} restored.")
        return redirect("kept-tests" if self.is_of_tests else "all-policies")

    @property
    def is_of_tests(self) -> bool:
        """Whether a kept test was deleted."""
        return self.request.GET.get("to") == "tests"


class PoliciesAsYaml(SelectedPolicies):
    """The selected policies as one YAML file."""

    def get(self, request: HttpRequest, *_args: Any, **_kwargs: Any) -> HttpResponse:  # noqa: ARG002 - as Django calls it
        """Export them; a comment says where the policies of another cluster begin."""
        names_of: dict[str, list[tuple[str, str, str]]] = {}
        for cluster, key in self.selected():
            names_of.setdefault(cluster, []).append(key)
        clusters = {each.name: each for each in Cluster.objects.filter(name__in=names_of)}
        texts = [
            f"# Cluster {name}\n{_text_of(clusters[name], names_of[name])}"
            for name in sorted(clusters)
        ]
        answer = HttpResponse("---\n".join(texts), content_type="application/yaml; charset=utf-8")
        answer["Content-Disposition"] = 'attachment; filename="policies.yaml"'
        return answer

    def post(self, request: HttpRequest, *_args: Any, **_kwargs: Any) -> HttpResponse:
        """Export what a form has picked."""
        return self.get(request)


def _text_of(cluster: Cluster, keys: list[tuple[str, str, str]]) -> str:
    stored: Mapping[Any, Any] = services.stored_by_key(cluster, keys)
    wanted = set(keys)
    return render_manifests(each.to_manifest() for key, each in stored.items() if key in wanted)
