"""ConnectView: the first two steps, paste and test; nothing is stored before the test passes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.generic.edit import FormMixin

from policies import roles
from portal.pages.clusters.connect.checks import checks_of
from portal.pages.clusters.connect.form import ConnectForm
from portal.pages.clusters.connect.steps import wizard_steps
from portal.pages.views import PortalPage
from sync.connect import join, kubeconfig, sealed_box
from sync.connect.join import NotUsableError
from sync.connect.kubeconfig import KubeconfigError
from sync.connect.probe import State
from sync.connect.seal_keys import KeyFileError
from sync.connect.sealed_box import SealingError
from sync.models import ClusterConnection, SyncRun
from sync.passes import lifecycle

if TYPE_CHECKING:
    from django.http import HttpRequest

    from sync.connect.join import Joined
    from sync.connect.probe import ProbeResult

    _FormMixin = FormMixin[ConnectForm]
else:
    _FormMixin = FormMixin


class ConnectView(_FormMixin, PortalPage):
    """The form with its test; ``do=connect`` tests again, stores, and leads to the next steps."""

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

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Add the steps at the left."""
        findings: ProbeResult | None = kwargs.get("findings")
        steps = wizard_steps(current="test" if findings else "paste", findings=findings)
        return super().get_context_data(**kwargs, steps=steps)

    def post(self, request: HttpRequest) -> HttpResponse:
        """Test the connection, or connect and lead on; or show what is wrong."""
        connect_form, context = self.get_form(), {}
        if connect_form.is_valid():
            if request.POST.get("do") == "test":
                context = self._test(connect_form)
            elif joined := self._join(connect_form, context):
                return self._lead_on(joined)
        is_fine = bool(context.get("findings")) and context["findings"].is_usable
        # htmx drops the body of an answer that is an error.
        status = 200 if is_fine or "HX-Request" in request.headers else 422
        page = self.get_context_data(form=connect_form, **context)
        return self.render_to_response(page, status=status)

    def _test(self, connect_form: ConnectForm) -> dict[str, Any]:
        """Test, and store nothing."""
        asked = connect_form.join_request()
        try:
            # Before the credential is sent anywhere: without a key it could not be kept.
            sealed_box.current_key_id()
            findings = join.try_out(asked)
        except (KubeconfigError, SealingError, KeyFileError) as error:
            _refuse(connect_form, error)
            return {}
        return _tested(findings, asked)

    def _join(self, connect_form: ConnectForm, context: dict[str, Any]) -> Joined | None:
        """Connect the cluster; a refusal becomes an error of the form, or the test's rows."""
        asked = connect_form.join_request()
        try:
            return join.join(asked, user=self.username)
        except NotUsableError as error:
            context |= _tested(error.findings, asked)
            if not asked.is_anyway and _replaces_working(asked.name):
                told = f"The existing connection works, and this one does not: {error}"
                connect_form.add_error(None, ValidationError(told, code="not-usable"))
        except ValidationError as error:
            connect_form.add_error("name", error.messages)
        except (KubeconfigError, SealingError, KeyFileError) as error:
            _refuse(connect_form, error)
        return None

    def _lead_on(self, joined: Joined) -> HttpResponse:
        cluster = joined.connection.cluster
        if joined.findings.is_usable:
            lifecycle.request(
                cluster, mode=SyncRun.Mode.IMPORT, trigger="person", user=self.username
            )
        else:
            not_usable = "Connected, but the cluster cannot be used yet: see what is missing below."
            messages.warning(self.request, not_usable)
        address = reverse("cluster-setup", args=[cluster.name])
        if "HX-Request" in self.request.headers:
            return HttpResponse(headers={"HX-Redirect": address})
        return redirect(address)


def _replaces_working(name: str) -> bool:
    working = ClusterConnection.objects.filter(cluster__name=name, state=State.OK)
    return working.exists()


def _tested(findings: ProbeResult, asked: join.JoinRequest) -> dict[str, Any]:
    rows = checks_of(findings, asked)
    return {
        "findings": findings,
        "checks": rows,
        "passed": sum(each.look == "passed" for each in rows),
        "server": kubeconfig.parse(asked.text, context=asked.context).server,
        "name": asked.name,
    }


def _refuse(connect_form: ConnectForm, error: Exception) -> None:
    if isinstance(error, KubeconfigError):
        refusal_errors = [ValidationError(str(each), code=each.code) for each in error.refusals]
        connect_form.add_error("text", refusal_errors)
    else:
        connect_form.add_error(None, f"The credential cannot be sealed: {error}")
