"""NewPolicyPage asks for the kind and the place of a new policy, and leads to its editor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.core.exceptions import PermissionDenied, ValidationError
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import urlencode

from policies import roles
from policies.drafts.kinds import BY_NAME, KINDS
from policies.models import Namespace
from portal.pages.policies.panes.places import MOST
from portal.pages.shell.chosen import chosen_cluster, visible_clusters
from portal.pages.views import PortalPage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.http import HttpRequest
    from django.http.response import HttpResponseBase

NAMES_OFFERED: Final = 1000
LONGEST: Final = 2000


class NewPolicyForm(forms.Form):
    """A kind, a cluster, and one or several namespaces where the kind has one."""

    kind = forms.ChoiceField()
    cluster = forms.ChoiceField()
    namespace = forms.CharField(
        required=False,
        max_length=LONGEST,
        help_text="One or more, separated by commas; leave it empty for a PriorityClass.",
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
        """Whether there are such namespaces, and the person may write there."""
        sent: dict[str, Any] = super().clean() or {}
        if self.errors:
            return sent
        kind, cluster = BY_NAME[sent["kind"]], sent["cluster"]
        names = sent["namespaces"] = names_in(sent["namespace"]) if kind.is_namespaced else [""]
        if problem := self._problem_of(cluster, names) if kind.is_namespaced else "":
            raise ValidationError({"namespace": ValidationError(problem, code="unknown")})
        permission = roles.writing(kind.name, "add")
        for name in names:
            if not roles.may(self._user, permission, cluster=cluster, namespace=name):
                where = f"{cluster}/{name}" if name else cluster
                raise ValidationError(
                    f"Your role does not allow a new {kind.name} in {where}.", code="forbidden"
                )
        return sent

    def _problem_of(self, cluster: str, names: Sequence[str]) -> str:
        if not names:
            return "Name a namespace."
        if len(names) > MOST:
            return f"More than {MOST} namespaces: write a namespace class instead."
        found = Namespace.objects.filter(cluster__name=cluster, name__in=names)
        known = set(found.values_list("name", flat=True))
        # One that the person may not see is as unknown as one that is not there.
        unknown = [
            name for name in names if name not in known or not roles.sees(self._user, cluster, name)
        ]
        return f"Cluster {cluster} has no namespace {unknown[0]}." if unknown else ""


def names_in(text: str) -> list[str]:
    """The names of a list that is separated by commas or spaces, each once."""
    return list(dict.fromkeys(text.replace(",", " ").split()))


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
            "namespace": ", ".join(query.getlist("namespace")).replace("\0", "")[:LONGEST],
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
        first, *others = sent["namespaces"]
        editor = reverse("policy-new", args=[sent["cluster"], first, kind.plural])
        query = urlencode({"also": others}, doseq=True)
        return redirect(f"{editor}?{query}" if others else editor)

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
