"""The import page: paste or upload policies, preview, save all or none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from csp.constants import NONCE
from csp.decorators import csp_update
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.shortcuts import redirect
from django.utils.decorators import method_decorator

from policies import roles
from policies.drafts import bulk_import
from policies.drafts.draft import LONGEST
from policies.drafts.kinds import KINDS
from policies.manifests.bundle import DEFAULT_NAMESPACE
from policies.manifests.documents import ManifestError
from policies.plurals import counted
from portal.pages.views import ClusterPage

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from policies.drafts.bulk_import import Plan, Planned
    from policies.manifests.bundle import Bundle

NO_REASON: Final = "Give a reason: it stays on record."
OVERTAKEN: Final = "Something was saved meanwhile. Look at the changes again, then save."
NOT_TEXT: Final = "The file is no UTF-8 text."


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
        text = self._text()
        if text is None:
            return self._answer("", None, status=422, form_error=NOT_TEXT)
        namespace = request.POST.get("namespace", "").strip()[:63] or DEFAULT_NAMESPACE
        if self.creates and not self.may_make_namespaces:
            raise PermissionDenied
        try:
            bundle = bulk_import.read(text, namespace=namespace)
            plan = bulk_import.plan(
                self.cluster, bundle, sees=self._sees, create_namespaces=self.creates
            )
        except ManifestError as error:
            broken = bulk_import.Plan(problems=tuple(error.problems))
            return self._answer(text, broken, status=422)
        if request.POST.get("do") != "save":
            return self._answer(text, plan, status=200)
        return self._save(text, bundle, plan)

    def _save(self, text: str, bundle: Bundle, plan: Plan) -> HttpResponse:
        # All or nothing: the transaction saves no part of a text.
        if not all(self._may_write(each) for each in plan.objects):
            raise PermissionDenied
        if not (reason := self.request.POST.get("reason", "").strip()[:1000]):
            return self._answer(text, plan, status=422, form_error=NO_REASON)
        # The text was previewed against a state that another save has changed since.
        if plan.seen != self.request.POST.get("seen", ""):
            return self._answer(text, plan, status=409, form_error=OVERTAKEN)
        dangers, word = bulk_import.dangers_of(self.cluster, plan)
        if dangers and self.request.POST.get("confirm", "").strip() != word:
            return self._answer(text, plan, status=422, dangers=dangers, word=word)
        try:
            bulk_import.save(self.cluster, bundle, plan, author=(self.username, reason))
        except bulk_import.OvertakenError:
            return self._answer(text, plan, status=409, form_error=OVERTAKEN)
        number = sum(each.verb != "unchanged" for each in plan.objects)
        messages.success(
            self.request, f"{number} of {counted(len(plan.objects), 'objects')} written."
        )
        return redirect("policy-list", self.cluster.name)

    def _text(self) -> str | None:
        """What was pasted, or the file in its place; None for a file that is no text."""
        upload = self.request.FILES.get("file")
        if upload is None:
            return self.request.POST.get("text", "").replace("\r\n", "\n")
        try:
            return str(upload.read(LONGEST * 4 + 1), "utf-8-sig")
        except UnicodeDecodeError:
            return None

    def _may_write(self, each: Planned) -> bool:
        """Whether the signed-in person may write the object; nobody may write a hidden one."""
        if each.is_hidden:
            return False
        if each.verb == "unchanged":
            return True
        action = "change" if each.before else "add"
        return roles.may(
            self.request.user,
            roles.writing(each.kind, action),
            cluster=self.cluster.name,
            namespace=each.namespace,
        )

    def _answer(self, text: str, plan: Plan | None, *, status: int, **more: Any) -> HttpResponse:
        objects = [
            {"planned": each, "may_write": self._may_write(each)}
            for each in (plan.objects if plan else ())
        ]
        context = self.get_context_data(
            text=text,
            plan=plan,
            objects=objects,
            may_save=bool(objects) and all(each["may_write"] for each in objects),
            namespace=self.request.POST.get("namespace", ""),
            reason=self.request.POST.get("reason", ""),
            **more,
        )
        return self.render_to_response(context, status=status)

    def _sees(self, kind: str, namespace: str, name: str) -> bool:
        """Whether the signed-in person may know of an object, stored or not."""
        place = name if kind == "Namespace" else namespace or None
        return roles.sees(self.request.user, self.cluster.name, place)
