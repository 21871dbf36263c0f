"""PeopleView, the page of RoleBindings: granted to a person or group, taken back; names offered."""

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
    from collections.abc import Iterable

    from django.http import HttpRequest, HttpResponse

ROLE_HISTORY: Final = 20
FEWEST_LETTERS: Final = 3
MOST_NAMES: Final = 20
ROLE_WORDS: Final = {
    "viewer": "sees policies, decisions and live state",
    "auditor": "sees the same, and holds decisions against retention",
    "editor": "writes policies, priority classes and limited resources",
    "approver": "resolves conflicts, confirms deletions, starts and pauses syncs, takes ownership",
    "admin": "everything there, roles included",
}


def role_words(bindings: Iterable[RoleBinding]) -> list[dict[str, Any]]:
    """Bindings with what their roles may do."""
    return [{"binding": each, "words": ROLE_WORDS[each.role]} for each in bindings]


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
        accounts = get_user_model().objects
        cleaned["user"] = None if group else accounts.filter(username=subject).first()
        if subject and not (cleaned["group"] or cleaned["user"]):
            self.add_error("subject", f"There is no {'group' if group else 'user'} of this name.")
        return cleaned

    def binding(self) -> RoleBinding:
        """The binding that the form describes, not stored yet."""
        binding_fields = ("user", "group", "role", "cluster", "namespace")
        return RoleBinding(**{name: self.cleaned_data[name] for name in binding_fields})


def names_like(letters: str, user: Any) -> list[str]:
    """A few users whose names begin with the words: of the asker's groups, or all for the fleet.

    Fewer than three letters find nobody, so that nobody can list all accounts.
    """
    letters = letters.replace("\0", "").strip()
    if len(letters) < FEWEST_LETTERS:
        return []
    usernames_like = get_user_model().objects.filter(is_active=True, username__istartswith=letters)
    # Names of colleagues alone: an admin of one namespace must not list all accounts.
    if not roles.sees_all(user):
        usernames_like = usernames_like.filter(groups__in=user.groups.all())
    usernames = usernames_like.order_by("username").values_list("username", flat=True).distinct()
    return list(usernames[:MOST_NAMES])


class PeopleNamesView(PortalPage):
    """The names that the form's field offers."""

    somewhere = roles.GIVE_ROLES

    def get(self, request: HttpRequest, *_args: Any, **_kwargs: Any) -> HttpResponse:
        """Render the names as options."""
        usernames = names_like(request.GET.get("subject", ""), request.user)
        return render(request, "parts/_options.html", {"names": usernames})


class PeopleView(PortalPage):
    """The visible role bindings, and the forms that change them."""

    template_name = "access/people.html"
    somewhere = roles.GIVE_ROLES

    def permission_for(self, request: HttpRequest) -> str:
        """Granting and revoking are two rights."""
        return roles.TAKE_ROLES if "take" in request.POST else roles.GIVE_ROLES

    def scope(self) -> roles.RoleScope:
        """The scope of the form: whoever grants a role must be admin in all of it."""
        sent = self.request.POST
        if "take" in sent:
            taken_binding = self._taken_binding()
            return roles.place_of_binding(taken_binding.cluster, taken_binding.namespace)
        return roles.place_of_binding(
            sent.get("cluster", "").strip(), sent.get("namespace", "").strip()
        )

    def _taken_binding(self) -> RoleBinding:
        return get_object_or_404(RoleBinding, pk=whole_number(self.request.POST["take"]))

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The bindings by subject, the form, and the history of roles."""
        user = self.request.user
        return super().get_context_data(
            **{"form": BindingForm(initial=self.request.GET.dict()), **kwargs},
            keeps_accounts=roles.may(user, roles.KEEP_ACCOUNTS),
            bindings=_binding_lines(user),
            role_words=ROLE_WORDS.items(),
            clusters=roles.visible(Cluster.objects.all(), user, cluster="name").order_by("name"),
            history=services.role_history()[:ROLE_HISTORY] if roles.sees_all(user) else (),
        )

    def post(self, request: HttpRequest) -> HttpResponse:
        """Grant a role, or revoke one."""
        if "take" in request.POST:
            taken_binding = self._taken_binding()
            revoked_words = f"Revoked: {taken_binding}."
            services.unbind_role(binding=taken_binding, author=request.user)
            messages.success(request, revoked_words)
            return redirect("people")
        binding_form = BindingForm(request.POST)
        if binding_form.is_valid():
            try:
                binding = services.bind_role(binding=binding_form.binding(), author=request.user)
            except ValidationError as error:
                for name, texts in error.message_dict.items():
                    binding_form.add_error(name if name in binding_form.fields else None, texts)
            else:
                messages.success(request, f"Granted: {binding}.")
                return redirect("people")
        return self.render_to_response(self.get_context_data(form=binding_form), status=422)


def _binding_lines(user: Any) -> list[dict[str, Any]]:
    """The bindings that a person may know of, each with whether the person may take it back."""
    bindings = RoleBinding.objects.select_related("user", "group")
    visible = roles.visible(bindings, user, cluster="cluster", namespace="namespace")
    binding_lines = []
    for bound in visible.order_by("user__username", "group__name", "cluster", "namespace", "role"):
        at = roles.place_of_binding(bound.cluster, bound.namespace)
        may_take = roles.may(user, roles.TAKE_ROLES, cluster=at.cluster, namespace=at.namespace)
        binding_lines.append({"binding": bound, "may_take": may_take})
    return binding_lines
