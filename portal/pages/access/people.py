"""The page of people: grant and revoke roles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.contrib import messages
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse_lazy

from policies import roles, services
from policies.models import Cluster, RoleBinding
from portal.pages.views import PortalPage, whole_number

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

GIVING: Final = "policies.add_rolebinding"
TAKING: Final = "policies.delete_rolebinding"
HISTORY: Final = 20
FEWEST_LETTERS: Final = 3
MOST_NAMES: Final = 20
ROLE_WORDS: Final = {
    "viewer": "sees policies, decisions and live state",
    "auditor": "sees the same, and holds decisions against retention",
    "editor": "writes policies, priority classes and limited resources",
    "approver": "resolves conflicts, confirms deletions, starts and pauses syncs, takes ownership",
    "admin": "everything there, roles included",
}


class BindingForm(forms.Form):
    """The form that grants a role: to a person or group, in a scope."""

    subject = forms.CharField(
        max_length=156,
        label="Person",
        help_text=(
            f"A user's name, or group: and a group's name. From {FEWEST_LETTERS} letters on, "
            "names of your groups are offered."
        ),
        widget=forms.TextInput(
            attrs={
                "autocomplete": "off",
                "spellcheck": "false",
                "list": "known",
                "hx-get": reverse_lazy("people-names"),
                "hx-trigger": "input changed delay:200ms",
                "hx-target": "#known",
            }
        ),
    )
    role = forms.ChoiceField(choices=RoleBinding.Role.choices)
    cluster = forms.CharField(
        required=False, max_length=253, help_text="Empty: every cluster, later ones too."
    )
    namespace = forms.CharField(
        required=False,
        max_length=63,
        help_text="Empty: the whole cluster. A beginning and * fits all that begin so.",
    )

    def clean(self) -> dict[str, Any]:
        """Find the user or the group."""
        cleaned = super().clean() or {}
        subject = cleaned.get("subject", "").strip()
        group = subject.removeprefix("group:").strip() if subject.startswith("group:") else ""
        cleaned["group"] = Group.objects.filter(name=group).first() if group else None
        users = get_user_model().objects
        cleaned["user"] = None if group else users.filter(username=subject).first()
        if subject and not (cleaned["group"] or cleaned["user"]):
            self.add_error("subject", f"There is no {'group' if group else 'user'} of this name.")
        return cleaned

    def binding(self) -> RoleBinding:
        """The binding that the form describes, not stored yet."""
        names = ("user", "group", "role", "cluster", "namespace")
        return RoleBinding(**{name: self.cleaned_data[name] for name in names})


def names_like(words: str, user: Any) -> list[str]:
    """A few users whose names begin with the words: of the asker's groups, or all for the fleet.

    Fewer than three letters find nobody, so that nobody can list all accounts.
    """
    words = words.replace("\0", "").strip()
    if len(words) < FEWEST_LETTERS:
        return []
    found = get_user_model().objects.filter(is_active=True, username__istartswith=words)
    # Names of colleagues alone: an admin of one namespace must not list all accounts.
    if not roles.sees_all(user):
        found = found.filter(groups__in=user.groups.all())
    names = found.order_by("username").values_list("username", flat=True).distinct()
    return list(names[:MOST_NAMES])


class PeopleNamesView(PortalPage):
    """The names that the form's field offers."""

    somewhere = GIVING

    def get(self, request: HttpRequest, *_args: Any, **_kwargs: Any) -> HttpResponse:
        """Render the names as options."""
        names = names_like(request.GET.get("subject", ""), request.user)
        return render(request, "parts/_options.html", {"names": names})


class PeopleView(PortalPage):
    """The visible role bindings, and the forms that change them."""

    template_name = "access/people.html"
    somewhere = GIVING

    def permission_for(self, request: HttpRequest) -> str:
        """Granting and revoking are two rights."""
        return TAKING if "take" in request.POST else GIVING

    def scope(self) -> roles.RoleScope:
        """The scope of the form: whoever grants a role must be admin in all of it."""
        post = self.request.POST
        if "take" in post:
            taken = self._taken()
            return _place(taken.cluster, taken.namespace)
        return _place(post.get("cluster", "").strip(), post.get("namespace", "").strip())

    def _taken(self) -> RoleBinding:
        return get_object_or_404(RoleBinding, pk=whole_number(self.request.POST["take"]))

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The bindings by subject, the form, and the history of roles."""
        user = self.request.user
        return super().get_context_data(
            **{"form": BindingForm(), **kwargs},
            bindings=_listed(user),
            role_words=ROLE_WORDS.items(),
            clusters=roles.visible(Cluster.objects.all(), user, cluster="name").order_by("name"),
            history=services.role_history()[:HISTORY] if roles.sees_all(user) else (),
        )

    def post(self, request: HttpRequest) -> HttpResponse:
        """Grant a role, or revoke one."""
        if "take" in request.POST:
            taken = self._taken()
            words = f"Revoked: {taken}."
            services.unbind_role(binding=taken, author=request.user)
            messages.success(request, words)
            return redirect("people")
        form = BindingForm(request.POST)
        if form.is_valid():
            try:
                binding = services.bind_role(binding=form.binding(), author=request.user)
            except ValidationError as error:
                for name, texts in error.message_dict.items():
                    form.add_error(name if name in form.fields else None, texts)
            else:
                messages.success(request, f"Granted: {binding}.")
                return redirect("people")
        return self.render_to_response(self.get_context_data(form=form), status=422)


def _place(cluster: str, namespace: str) -> roles.RoleScope:
    """A namespace's admin grants roles in that very namespace; a prefix needs a wider scope."""
    exact = namespace if not namespace.endswith("*") else ""
    return roles.RoleScope(cluster, exact if cluster else "")


def _listed(user: Any) -> list[dict[str, Any]]:
    """The bindings that a person may know of, each with whether the person may take it back."""
    rows = RoleBinding.objects.select_related("user", "group")
    found = roles.visible(rows, user, cluster="cluster", namespace="namespace")
    lines = []
    for each in found.order_by("user__username", "group__name", "cluster", "namespace", "role"):
        at = _place(each.cluster, each.namespace)
        may_take = roles.may(user, TAKING, cluster=at.cluster, namespace=at.namespace)
        lines.append({"binding": each, "may_take": may_take})
    return lines
