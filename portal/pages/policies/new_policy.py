"""NewPolicyPage asks for the kind and the place of a new policy, and leads to its editor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.core.exceptions import PermissionDenied, ValidationError
from django.shortcuts import redirect

from policies import roles
from policies.drafts.kinds import BY_NAME, KINDS
from policies.models import Namespace
from portal.pages.shell.chosen import chosen_cluster, visible_clusters
from portal.pages.views import PortalPage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.http import HttpRequest
    from django.http.response import HttpResponseBase

NAMES_OFFERED: Final = 1000
LONGEST_NAME: Final = 253


class NewPolicyForm(forms.Form):
    """A kind, a cluster, and a namespace where the kind has one."""

    kind = forms.ChoiceField()
    cluster = forms.ChoiceField()
    namespace = forms.CharField(
        required=False,
        max_length=LONGEST_NAME,
        help_text="Not for a PriorityClass, which belongs to the whole cluster.",
        widget=forms.TextInput(
            attrs={"list": "namespaces", "autocomplete": "off", "spellcheck": "false"}
        ),
    )

    def __init__(
        self, user: Any, kinds: Sequence[str], clusters: Sequence[str], **more: Any
    ) -> None:
        super().__init__(**more)
        self._user = user
        for name, values in (("kind", kinds), ("cluster", clusters)):
            field: Any = self.fields[name]
            field.choices = [(value, value) for value in values]

    def clean(self) -> dict[str, Any]:
        """Whether there is such a namespace, and the person may write there."""
        sent: dict[str, Any] = super().clean() or {}
        if self.errors:
            return sent
        kind, cluster, namespace = BY_NAME[sent["kind"]], sent["cluster"], sent["namespace"]
        if kind.is_namespaced and not self._has_namespace(cluster, namespace):
            words = f"Cluster {cluster} has no namespace {namespace}." if namespace else ""
            raise ValidationError(
                {"namespace": ValidationError(words or "Name a namespace.", code="unknown")}
            )
        place = {"cluster": cluster, "namespace": namespace if kind.is_namespaced else ""}
        if not roles.may(self._user, roles.writing(kind.name, "add"), **place):
            where = "/".join(filter(None, place.values()))
            raise ValidationError(
                f"Your role does not allow a new {kind.name} in {where}.", code="forbidden"
            )
        return sent

    def _has_namespace(self, cluster: str, namespace: str) -> bool:
        # One that the person may not see is as unknown as one that is not there.
        return (
            roles.sees(self._user, cluster, namespace)
            and Namespace.objects.filter(cluster__name=cluster, name=namespace).exists()
        )


class NewPolicyPage(PortalPage):
    """The questions before the editor; it writes nothing, so its answers are in the address."""

    template_name = "policies/new.html"
    form: NewPolicyForm

    def find(self, names: dict[str, Any]) -> None:
        """Read the answers that there are; it opens for those who may create something."""
        super().find(names)
        user, query = self.request.user, self.request.GET
        kinds = [
            kind.name
            for kind in KINDS
            if not kind.is_configuration
            and roles.may_somewhere(user, roles.writing(kind.name, "add"))
        ]
        if not kinds:
            raise PermissionDenied
        known = {
            "kind": query.get("kind", ""),
            "cluster": chosen_cluster(self.request),
            "namespace": query.get("namespace", "").replace("\0", "")[:LONGEST_NAME],
        }
        self.form = NewPolicyForm(
            user,
            kinds,
            visible_clusters(self.request),
            data=query if "asked" in query else None,
            initial=known,
        )

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:  # type: ignore[override]  # a redirection, too
        """Lead to the editor once all is answered."""
        if not self.form.is_valid():
            return super().get(request, *args, **kwargs)
        sent = self.form.cleaned_data
        kind = BY_NAME[sent["kind"]]
        if not kind.is_namespaced:
            return redirect("priority-class-new", sent["cluster"])
        return redirect("policy-new", sent["cluster"], sent["namespace"], kind.plural)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The form, and names of namespaces to choose from."""
        cluster = str(self.form["cluster"].value() or "")
        namespaces = roles.visible(
            Namespace.objects.order_by("name"),
            self.request.user,
            cluster="cluster__name",
            namespace="name",
        )
        if cluster:
            namespaces = namespaces.filter(cluster__name=cluster)
        names = namespaces.values_list("name", flat=True).distinct()[:NAMES_OFFERED]
        return super().get_context_data(**kwargs, form=self.form, namespaces=list(names))
