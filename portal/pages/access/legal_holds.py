"""HoldsView, the page of legal holds: HoldForm makes an AuditHold, auditors release it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.contrib import messages
from django.shortcuts import get_object_or_404, redirect

from admission.models import AuditHold
from policies import roles
from policies.models import Cluster
from portal.pages.lists import ListColumns, listed
from portal.pages.views import PortalPage, whole_number

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpRequest, HttpResponse

    _HoldForm = forms.ModelForm[AuditHold]
else:
    _HoldForm = forms.ModelForm

HOLDING: Final = "admission.add_audithold"
_COLUMNS: Final = ListColumns(
    headings=(
        ("place", "Place", ""),
        ("from", "From", ""),
        ("", "To", ""),
        ("", "Why", ""),
        ("by", "By", ""),
        ("released", "Released", ""),
    ),
    orders={
        "newest": ("id",),
        "place": ("cluster", "namespace", "-id"),
        "from": ("first_day", "id"),
        "by": ("created_by", "-id"),
        "released": ("released", "-id"),
    },
    usual="-newest",
    searched=("cluster", "namespace", "reason"),
)


class HoldForm(_HoldForm):
    """The form of a hold: decisions to keep, and the reason."""

    class Meta:
        model = AuditHold
        fields = ("cluster", "namespace", "first_day", "last_day", "reason")
        widgets = {
            "cluster": forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
            "namespace": forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
            "first_day": forms.DateInput(attrs={"type": "date"}),
            "last_day": forms.DateInput(attrs={"type": "date"}),
            "reason": forms.TextInput(attrs={"autocomplete": "off", "maxlength": 1000}),
        }

    def clean_cluster(self) -> str:
        """Any name: decisions stay on record when their cluster is deleted."""
        return str(self.cleaned_data["cluster"]).strip()

    def clean_namespace(self) -> str:
        """Without blanks around."""
        return str(self.cleaned_data["namespace"]).strip()


class HoldsView(PortalPage):
    """The visible holds and their release; with ``new``, the form for another one."""

    template_name = "access/legal_holds.html"
    somewhere = HOLDING

    def permission_for(self, _request: HttpRequest) -> str:
        """Creating and releasing need one permission, in the hold's own place."""
        return HOLDING

    def scope(self) -> roles.RoleScope:
        """The place of the hold: an auditor of one namespace may hold only there."""
        sent = self.request.POST
        if "release" in sent:
            hold = self._hold_to_release()
            return roles.RoleScope(hold.cluster, hold.namespace)
        return roles.RoleScope(sent.get("cluster", "").strip(), sent.get("namespace", "").strip())

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The holds with whether they may be released, and the form."""
        user = self.request.user
        asked = listed(self.visible(), self.request, _COLUMNS)
        holds = [
            {
                "hold": hold,
                "may_release": hold.released is None
                and roles.may(user, HOLDING, cluster=hold.cluster, namespace=hold.namespace),
            }
            for hold in asked["page"]
        ]
        clusters = roles.visible(Cluster.objects.all(), user, cluster="name").order_by("name")
        is_new = "form" in kwargs or "new" in self.request.GET
        hold_context = {"form": HoldForm(), **kwargs, "is_new": is_new}
        return super().get_context_data(**hold_context, **asked, holds=holds, clusters=clusters)

    def post(self, request: HttpRequest) -> HttpResponse:
        """Create a hold, or release one."""
        if "release" in request.POST:
            hold = self._hold_to_release()
            if hold.released is None:
                hold.release(user=self.username)
            messages.success(request, f"Released: {hold}. Its decisions may be removed now.")
            return redirect("holds")
        hold_form = HoldForm(request.POST)
        if not hold_form.is_valid():
            return self.render_to_response(self.get_context_data(form=hold_form), status=422)
        hold_form.instance.created_by = self.username
        hold = hold_form.save()
        messages.success(request, f"Held: {hold}.")
        return redirect("holds")

    def _hold_to_release(self) -> AuditHold:
        """The hold to release; 404 for one in a place that the person does not see."""
        return get_object_or_404(self.visible(), pk=whole_number(self.request.POST["release"]))

    def visible(self) -> QuerySet[AuditHold]:
        """The holds of the places that the person sees."""
        holds, user = AuditHold.objects.all(), self.request.user
        return roles.visible(holds, user, cluster="cluster", namespace="namespace")
