"""ConnectView and its ConnectForm: a kubeconfig pasted or uploaded, joined; refusals as errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.shortcuts import redirect
from django.views.generic.edit import FormMixin

from policies import roles
from policies.models import Cluster
from policies.validators import DNS_LABEL
from portal.pages.views import PortalPage
from sync.connect import join, kubeconfig
from sync.connect.join import NotUsableError
from sync.connect.kubeconfig import KubeconfigError
from sync.connect.seal_keys import KeyFileError
from sync.connect.sealed_box import SealingError
from sync.models import SyncRun
from sync.passes import lifecycle

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from sync.connect.join import Joined

    _FormMixin = FormMixin["ConnectForm"]
else:
    _FormMixin = FormMixin


class SecretTextarea(forms.Textarea):
    """A text field that never renders its value, which holds a credential."""

    def format_value(self, value: Any) -> None:
        """None, whatever the value."""


class ConnectForm(forms.Form):
    """A name and a kubeconfig, pasted or as a file."""

    name = forms.CharField(
        max_length=63,
        validators=[RegexValidator(DNS_LABEL, "must be a DNS label: a-z, 0-9 and hyphens")],
        help_text="How the cluster is called here; one that exists gets the new credential.",
    )
    context = forms.CharField(
        required=False, max_length=253, help_text="Empty: the file's current context."
    )
    text = forms.CharField(
        required=False,
        strip=False,
        label="Kubeconfig",
        widget=SecretTextarea(attrs={"rows": 12, "spellcheck": "false", "autocomplete": "off"}),
    )
    file = forms.FileField(required=False, label="Or a file")
    is_anyway = forms.BooleanField(
        required=False, label="Replace a connection that works even if this one does not"
    )
    is_other_cluster = forms.BooleanField(
        required=False, label="The name leads to another cluster from now on"
    )

    def __init__(self, *args: Any, may_add: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.may_add = may_add

    def clean_name(self) -> str:
        """Refuse a new name from those who may not add clusters."""
        cluster_name: str = self.cleaned_data["name"]
        if not self.may_add and not Cluster.objects.filter(name=cluster_name).exists():
            raise ValidationError("there is no such cluster, and you may not add one", code="new")
        return cluster_name

    def clean(self) -> dict[str, Any]:
        """Take the text from where it was given."""
        cleaned = super().clean() or {}
        uploaded, pasted = cleaned.get("file"), cleaned.get("text") or ""
        # Both or neither: which of two credentials counts must not be a guess.
        if bool(uploaded) == bool(pasted.strip()):
            self.add_error("text", "Paste a kubeconfig or choose a file: one of the two.")
            return cleaned
        try:
            # One byte more than allowed is enough to refuse a file that is too large.
            cleaned["text"] = uploaded.read(kubeconfig.LARGEST + 1).decode() if uploaded else pasted
        except UnicodeDecodeError:
            self.add_error("file", "This file is no text.")
        return cleaned

    def join_request(self) -> join.JoinRequest:
        """The request to join that the form describes."""
        request_fields = ("name", "text", "context", "is_anyway", "is_other_cluster")
        return join.JoinRequest(**{name: self.cleaned_data[name] for name in request_fields})


class ConnectView(_FormMixin, PortalPage):
    """The form that connects a cluster, and leads to the cluster's page."""

    template_name = "clusters/connect.html"
    permission = "sync.add_clusterconnection"
    form_class = ConnectForm

    def scope(self) -> roles.RoleScope:
        """The named cluster, once there is one: its admins may replace its connection."""
        return roles.RoleScope(self.request.POST.get("name", "").strip())

    def get_initial(self) -> dict[str, Any]:
        """The name that a link to this page gives."""
        return {"name": self.request.GET.get("name", "")[:63]}

    def get_form_kwargs(self) -> dict[str, Any]:
        """Add whether the person may create a cluster."""
        may_add_cluster = self.may("policies.add_cluster")
        return {**super().get_form_kwargs(), "may_add": may_add_cluster}

    def post(self, _request: HttpRequest) -> HttpResponse:
        """Connect, request the first import, and show the cluster; or show the errors."""
        connect_form = self.get_form()
        joined = self._join(connect_form) if connect_form.is_valid() else None
        if joined is None:
            return self.render_to_response(self.get_context_data(form=connect_form), status=422)
        cluster = joined.connection.cluster
        if joined.findings.is_usable:
            lifecycle.request(
                cluster, mode=SyncRun.Mode.IMPORT, trigger="person", user=self.username
            )
            messages.success(self.request, "Connected. The first import has begun; it only reads.")
        else:
            not_usable = "Connected, but the cluster cannot be used yet: see what is missing below."
            messages.warning(self.request, not_usable)
        return redirect("cluster-detail", cluster.name)

    def _join(self, connect_form: ConnectForm) -> Joined | None:
        """Connect the cluster; a refusal becomes an error of the form."""
        try:
            return join.join(connect_form.join_request(), user=self.username)
        except KubeconfigError as error:
            refusal_errors = [ValidationError(str(each), code=each.code) for each in error.refusals]
            connect_form.add_error("text", refusal_errors)
        except NotUsableError as error:
            text = "The connection that is there works, and this one does not"
            connect_form.add_error(None, ValidationError(f"{text}: {error}", code="not-usable"))
        except ValidationError as error:
            connect_form.add_error("name", error.messages)
        except (SealingError, KeyFileError) as error:
            connect_form.add_error(None, f"The credential cannot be sealed: {error}")
        return None
