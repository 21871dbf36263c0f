"""The page of legal holds: auditors make and release them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.contrib import messages
from django.shortcuts import get_object_or_404, redirect

from admission.models import AuditHold
from policies import roles
from policies.models import Cluster
from portal.pages.views import PortalPage, whole_number

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpRequest, HttpResponse

    _HoldForm = forms.ModelForm[AuditHold]
else:
    _HoldForm = forms.ModelForm

HOLDING: Final = "admission.add_audithold"
MOST: Final = 200
"""Holds that are listed, the newest first."""


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
    """The visible holds, the form for a new one, and their release."""

    template_name = "access/legal_holds.html"
    somewhere = HOLDING

    def permission_for(self, _request: HttpRequest) -> str:
        """Creating and releasing need one permission, in the hold's own place."""
        return HOLDING

    def scope(self) -> roles.RoleScope:
        """The place of the hold: an auditor of one namespace may hold only there."""
        post = self.request.POST
        if "release" in post:
            hold = self._hold()
            return roles.RoleScope(hold.cluster, hold.namespace)
        return roles.RoleScope(post.get("cluster", "").strip(), post.get("namespace", "").strip())

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The holds with whether they may be released, and the form."""
        user = self.request.user
        holds = [
            {
                "hold": hold,
                "may_release": hold.released is None
                and roles.may(user, HOLDING, cluster=hold.cluster, namespace=hold.namespace),
            }
            for hold in self.visible()[:MOST]
        ]
        clusters = roles.visible(Cluster.objects.all(), user, cluster="name").order_by("name")
        given = {"form": HoldForm(), **kwargs}
        return super().get_context_data(**given, holds=holds, clusters=clusters)

    def post(self, request: HttpRequest) -> HttpResponse:
        """Create a hold, or release one."""
        if "release" in request.POST:
            hold = self._hold()
            if hold.released is None:
                hold.release(user=self.username)
            messages.success(request, f"Released: {hold}. Its decisions may be removed now.")
            return redirect("holds")
        form = HoldForm(request.POST)
        if not form.is_valid():
            return self.render_to_response(self.get_context_data(form=form), status=422)
        form.instance.created_by = self.username
        hold = form.save()
        messages.success(request, f"Held: {hold}.")
        return redirect("holds")

    def _hold(self) -> AuditHold:
        """The hold to release; 404 for one in a place that the person does not see."""
        return get_object_or_404(self.visible(), pk=whole_number(self.request.POST["release"]))

    def visible(self) -> QuerySet[AuditHold]:
        """The holds of the places that the person sees."""
        rows, user = AuditHold.objects.all(), self.request.user
        return roles.visible(rows, user, cluster="cluster", namespace="namespace")
