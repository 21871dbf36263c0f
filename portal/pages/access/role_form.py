"""BindingForm, the form that grants a role, and the names that its fields offer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.shortcuts import render
from django.urls import reverse_lazy

from policies import roles, services
from policies.models import Cluster, Namespace, RoleBinding
from portal.pages.views import PortalPage

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from django.http import HttpRequest, HttpResponse

FEWEST_LETTERS: Final = 3
MOST_NAMES: Final = 20
MOST_PLACES: Final = 500
"""Names of clusters and of namespaces that fields offer."""
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


class RoleForm(forms.Form):
    """A role and its scope."""

    role = forms.ChoiceField(choices=RoleBinding.Role.choices)
    cluster = forms.CharField(
        required=False,
        max_length=253,
        help_text="Empty: every cluster, including later ones.",
        widget=forms.TextInput(
            attrs={"autocomplete": "off", "spellcheck": "false", "list": "known-clusters"}
        ),
    )
    namespace = forms.CharField(
        required=False,
        max_length=63,
        help_text="Empty: the whole cluster. team-* matches all that begin with team-.",
        widget=forms.TextInput(
            attrs={"autocomplete": "off", "spellcheck": "false", "list": "known-namespaces"}
        ),
    )

    def bind(self, *, author: Any, **subject: Any) -> RoleBinding | None:
        """Store the role; a refusal becomes an error of the form."""
        scope = {name: self.cleaned_data[name] for name in ("role", "cluster", "namespace")}
        try:
            return services.bind_role(binding=RoleBinding(**scope, **subject), author=author)
        except ValidationError as error:
            for name, texts in error.message_dict.items():
                self.add_error(name if name in self.fields else None, texts)
            return None


class BindingForm(RoleForm):
    """The form that grants a role to a person or group."""

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

    def clean(self) -> dict[str, Any]:
        """Find the user or the group."""
        cleaned = super().clean() or {}
        subject = cleaned.get("subject", "").strip()
        group = subject.removeprefix("group:").strip() if subject.startswith("group:") else ""
        cleaned["group"] = Group.objects.filter(name=group).first() if group else None
        accounts = get_user_model().objects
        cleaned["user"] = None if group else accounts.filter(username=subject).first()
        if subject and not (cleaned["group"] or cleaned["user"]):
            self.add_error("subject", f"There is no {'group' if group else 'user'} with this name.")
        return cleaned

    def bind_subject(self, *, author: Any) -> RoleBinding | None:
        """Store the role of the subject that the form names."""
        named = {name: self.cleaned_data[name] for name in ("user", "group")}
        return self.bind(author=author, **named)


def places_to_offer(reader: Any) -> dict[str, Sequence[str]]:
    """The names of clusters and namespaces that the reader sees."""
    clusters = roles.visible(Cluster.objects.all(), reader, cluster="name")
    namespaces = roles.visible(
        Namespace.objects.all(), reader, cluster="cluster__name", namespace="name"
    )
    cluster_names = clusters.order_by("name").values_list("name", flat=True)
    names = namespaces.order_by("name").values_list("name", flat=True).distinct()
    return {
        "cluster_names": list(cluster_names[:MOST_PLACES]),
        "namespace_names": list(names[:MOST_PLACES]),
    }


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
