"""ImportView: many policies pasted or uploaded, a Plan of bulk_import shown, all saved or none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from csp.constants import NONCE
from csp.decorators import csp_update
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.decorators import method_decorator

from policies import roles, services
from policies.drafts import bulk_import
from policies.drafts.draft import LONGEST
from policies.drafts.kinds import KINDS
from policies.manifests.bundle import DEFAULT_NAMESPACE
from policies.manifests.documents import ManifestError
from policies.plurals import counted
from portal.pages.policies.panes import proposals
from portal.pages.views import ClusterPage

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from policies.drafts.bulk_import import Plan, Planned
    from policies.manifests.bundle import Bundle

NO_REASON: Final = "Give a reason: it stays on record."
OVERTAKEN: Final = "Something was saved in the meantime. Review the changes again, then save."
NOT_TEXT: Final = "The file is not UTF-8 text."


@method_decorator(csp_update({"style-src": [NONCE]}), name="dispatch")
class ImportView(ClusterPage):
    """A text of many policies, a preview of its changes, and the form that saves all of them."""

    template_name = "policies/import.html"
    takes_part = True

    def may(self, permission: str) -> bool:
        """Whoever may write anything may preview; saving checks the permission of each object."""
        return super().may(permission) if permission else self.may_make

    @property
    def may_make(self) -> bool:
        """Whether the signed-in person may write a policy anywhere."""
        return any(
            roles.may_somewhere(self.request.user, roles.writing(kind.name, action))
            for kind in KINDS
            for action in ("add", "change")
        )

    @property
    def may_make_namespaces(self) -> bool:
        """Whether the signed-in person may add namespaces to the cluster."""
        permission = roles.writing("Namespace", "add")
        return roles.may(self.request.user, permission, cluster=self.cluster.name)

    @property
    def creates(self) -> bool:
        """Whether missing namespaces are to be created."""
        return self.request.POST.get("create_namespaces") == "on"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Say whether there is a form at all."""
        return super().get_context_data(
            **kwargs,
            may_make=self.may_make,
            may_make_namespaces=self.may_make_namespaces,
            creates=self.creates,
        )

    def post(self, request: HttpRequest, *_args: Any, **_kwargs: Any) -> HttpResponse:
        """Show the plan; with ``save``, carry it out."""
        import_text = self._import_text()
        if import_text is None:
            return self._show_plan("", None, status=422, form_error=NOT_TEXT)
        default_namespace = request.POST.get("namespace", "").strip()[:63] or DEFAULT_NAMESPACE
        if self.creates and not self.may_make_namespaces:
            raise PermissionDenied
        try:
            bundle = bulk_import.read(import_text, namespace=default_namespace)
            import_plan = bulk_import.plan(
                self.cluster, bundle, sees=self._sees_planned, create_namespaces=self.creates
            )
        except ManifestError as error:
            broken_plan = bulk_import.Plan(problems=tuple(error.problems))
            return self._show_plan(import_text, broken_plan, status=422)
        if request.POST.get("do") not in {"save", "propose"}:
            return self._show_plan(import_text, import_plan, status=200)
        # All or nothing: no part of a text is written.
        if not all(self._may_write(planned) for planned in import_plan.objects):
            raise PermissionDenied
        # The text was previewed against a state that another save has changed since.
        if import_plan.seen != request.POST.get("seen", ""):
            return self._show_plan(import_text, import_plan, status=409, form_error=OVERTAKEN)
        if request.POST["do"] == "propose":
            return self._propose(import_text, import_plan)
        return self._save(import_text, bundle, import_plan)

    @property
    def reason(self) -> str:
        """The reason that was given."""
        return self.request.POST.get("reason", "").strip()[:1000]

    def _propose(self, import_text: str, import_plan: Plan) -> HttpResponse:
        """Put all that the text would write into a change, in place of saving it."""
        title = f"Import {counted(len(import_plan.objects), 'objects')} into {self.cluster.name}"
        try:
            change = proposals.put_import(
                self, self.cluster, import_plan, title=title, reason=self.reason
            )
        except proposals.REFUSALS as error:
            refusal = proposals.words_of(error)
            return self._show_plan(import_text, import_plan, status=422, form_error=refusal)
        messages.success(self.request, proposals.ADDED)
        return redirect("change", change.pk)

    def _save(self, import_text: str, bundle: Bundle, import_plan: Plan) -> HttpResponse:
        reason = self.reason
        if not reason:
            return self._show_plan(import_text, import_plan, status=422, form_error=NO_REASON)
        dangers, word = bulk_import.dangers_of(self.cluster, import_plan)
        if dangers and self.request.POST.get("confirm", "").strip() != word:
            return self._show_plan(import_text, import_plan, status=422, dangers=dangers, word=word)
        try:
            bulk_import.save(self.cluster, bundle, import_plan, author=(self.username, reason))
        except bulk_import.OvertakenError:
            return self._show_plan(import_text, import_plan, status=409, form_error=OVERTAKEN)
        except services.ApprovalRequiredError as error:
            refusal = error.messages[0]
            return self._show_plan(import_text, import_plan, status=409, form_error=refusal)
        written = sum(planned.verb != "unchanged" for planned in import_plan.objects)
        messages.success(
            self.request, f"{written} of {counted(len(import_plan.objects), 'objects')} written."
        )
        return redirect(f"{reverse('all-policies')}?{urlencode({'cluster': self.cluster.name})}")

    def _import_text(self) -> str | None:
        """What was pasted, or the file in its place; None for a file that is no text."""
        upload = self.request.FILES.get("file")
        if upload is None:
            return self.request.POST.get("text", "").replace("\r\n", "\n")
        try:
            return str(upload.read(LONGEST * 4 + 1), "utf-8-sig")
        except UnicodeDecodeError:
            return None

    def _may_write(self, planned: Planned) -> bool:
        """Whether the signed-in person may write the object; nobody may write a hidden one."""
        if planned.is_hidden:
            return False
        if planned.verb == "unchanged":
            return True
        action = "change" if planned.before else "add"
        return roles.may(
            self.request.user,
            roles.writing(planned.kind, action),
            cluster=self.cluster.name,
            namespace=planned.namespace,
        )

    def _show_plan(self, text: str, plan: Plan | None, *, status: int, **more: Any) -> HttpResponse:
        objects = [
            {"planned": planned, "may_write": self._may_write(planned)}
            for planned in (plan.objects if plan else ())
        ]
        context = self.get_context_data(
            text=text,
            plan=plan,
            objects=objects,
            may_save=bool(objects) and all(planned["may_write"] for planned in objects),
            namespace=self.request.POST.get("namespace", ""),
            reason=self.request.POST.get("reason", ""),
            open_changes=proposals.open_changes(self.request.user) if objects else (),
            **more,
        )
        return self.render_to_response(context, status=status)

    def _sees_planned(self, kind: str, namespace: str, name: str) -> bool:
        """Whether the signed-in person may know of an object, stored or not."""
        seen_place = name if kind == "Namespace" else namespace or None
        return roles.sees(self.request.user, self.cluster.name, seen_place)
