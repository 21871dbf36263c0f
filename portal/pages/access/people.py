"""PeopleView, the page of people and groups with a panel beside; RolesView, all role bindings."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import Http404
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode

from policies import roles, services
from policies.models import RoleBinding
from portal.auth.invitations import may_link, new_link
from portal.pages.access.effective_access import COLUMNS, QUESTIONS
from portal.pages.access.invite_form import InviteForm
from portal.pages.access.keepers import tab_numbers
from portal.pages.access.person import panel_of
from portal.pages.access.role_form import ROLE_WORDS, BindingForm, places_to_offer
from portal.pages.access.subjects import (
    GROUP,
    SORTS,
    Subjects,
    SubjectSearch,
    find_subject,
    visible_bindings,
)
from portal.pages.access.token_form import revoke_sent
from portal.pages.lists import (
    ListColumns,
    columns_of,
    listed,
    order_of,
    page_of,
    search_of,
)
from portal.pages.views import PortalPage, whole_number

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

ROLE_HISTORY: Final = 20
HEADINGS: Final = (
    ("name", "Person", ""),
    ("", "Roles", ""),
    ("active", "Active", "figure active-cell"),
)
_BINDING_COLUMNS: Final = ListColumns(
    headings=(
        ("who", "Who", ""),
        ("role", "Role", ""),
        ("where", "Where", ""),
        ("by", "Granted by", "only-wide"),
        ("since", "Since", "only-wide"),
    ),
    orders={
        "who": ("user__username", "group__name", "cluster", "namespace", "role", "pk"),
        "role": ("role", "cluster", "namespace", "pk"),
        "where": ("cluster", "namespace", "role", "pk"),
        "by": ("created_by", "pk"),
        "since": ("created", "pk"),
    },
    usual="who",
    searched=("user__username", "group__name", "role", "cluster", "namespace", "created_by"),
)


class _RolesPage(PortalPage):
    """A page for those who give roles somewhere; its forms grant and revoke."""

    somewhere = roles.GIVE_ROLES

    def permission_for(self, request: HttpRequest) -> str:
        """Granting and revoking are two rights; tokens are looked after on their own."""
        if "revoke" in request.POST:
            return ""
        if not {"invite", "link"}.isdisjoint(request.POST):
            return roles.KEEP_ACCOUNTS
        return roles.TAKE_ROLES if "take" in request.POST else roles.GIVE_ROLES

    def may_post(self) -> bool:
        """Whether the form may be sent; a token's own check comes with its subject."""
        return "revoke" in self.request.POST or super().may_post()

    def scope(self) -> roles.RoleScope:
        """The scope of the form: whoever grants a role must be admin in all of it."""
        sent = self.request.POST
        if "invite" in sent:
            # An account is of the fleet; the form itself asks about the scope of each role.
            return roles.RoleScope()
        if "take" in sent:
            taken_binding = self._taken_binding()
            return roles.place_of_binding(taken_binding.cluster, taken_binding.namespace)
        return roles.place_of_binding(
            sent.get("cluster", "").strip(), sent.get("namespace", "").strip()
        )

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Add who may open the pages beside this one, and how much they have."""
        reader = self.request.user
        return super().get_context_data(
            **kwargs,
            keeps_accounts=roles.may(reader, roles.KEEP_ACCOUNTS),
            tab_numbers=tab_numbers(reader),
        )

    def _taken_binding(self) -> RoleBinding:
        return get_object_or_404(RoleBinding, pk=whole_number(self.request.POST["take"]))

    def take(self) -> None:
        """Revoke the role that a row's button names."""
        taken_binding = self._taken_binding()
        revoked_words = f"Revoked: {taken_binding}."
        services.unbind_role(binding=taken_binding, author=self.request.user)
        messages.success(self.request, revoked_words)


class PeopleView(_RolesPage):
    """People, service accounts and groups; ``who`` opens one in the panel, ``give`` the form."""

    template_name = "access/people.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The rows that fit, and what the panel shows."""
        reader, sent = self.request.user, self.request.GET
        order = order_of(sent, SORTS, usual="name")
        wanted = SubjectSearch(
            words=search_of(sent)[:100],
            role=sent["role"] if sent.get("role") in ROLE_WORDS else "",
            order=order,
        )
        subjects = Subjects(reader, wanted)
        context = {
            "page": page_of(subjects, self.request),
            "heads": list(columns_of(HEADINGS, sent, order)),
            "number": len(subjects),
            "wanted": wanted,
            "roles": ROLE_WORDS,
            "questions": QUESTIONS,
            "columns": COLUMNS,
            **self._panel(kwargs.get("form"), kwargs.get("who") or self.request.GET.get("who", "")),
            **kwargs,
        }
        return super().get_context_data(**context)

    def _panel(self, form: BindingForm | None, who: str) -> dict[str, Any]:
        """The panel of the chosen subject, and the form where it is asked for."""
        reader, sent = self.request.user, self.request.GET
        panel: dict[str, Any] = {}
        # A name that was mistyped in the form is an error of the form.
        if who:
            subject = find_subject(who, reader)
            panel["person"] = panel_of(subject, reader=reader, asked=sent.dict())
        elif sent.get("invite") and roles.may(reader, roles.KEEP_ACCOUNTS):
            return {"invite_form": InviteForm(), **places_to_offer(reader)}
        if form is not None or sent.get("give") or sent.get("subject"):
            first = {"subject": who or sent.get("subject", ""), "role": "viewer"}
            panel["form"] = form or BindingForm(initial=first)
            panel |= places_to_offer(reader)
        return panel

    def post(self, request: HttpRequest) -> HttpResponse:
        """Grant a role, revoke one, or revoke a token."""
        if "take" in request.POST:
            self.take()
            return redirect(self._address(self._known(request.GET.get("who", "")), "roles"))
        if "revoke" in request.POST:
            return self._revoke_token()
        if "invite" in request.POST:
            return self._invite()
        if "link" in request.POST:
            return self._make_link(request.POST["link"])
        binding_form = BindingForm(request.POST)
        if binding_form.is_valid():
            binding = binding_form.bind_subject(author=request.user)
            if binding:
                messages.success(request, f"Granted: {binding}.")
                subject = f"{GROUP}{binding.group}" if binding.group else str(binding.user)
                return redirect(self._address(subject, "roles"))
        return self.render_to_response(self.get_context_data(form=binding_form), status=422)

    def _invite(self) -> HttpResponse:
        """Create an account; its link is shown once, in this answer."""
        form = InviteForm(self.request.POST)
        invited = form.store(author=self.request.user) if form.is_valid() else None
        if invited:
            return self._make_link(invited.username)
        context = {"invite_form": form, **places_to_offer(self.request.user)}
        return self.render_to_response(self.get_context_data(**context), status=422)

    def _make_link(self, who: str) -> HttpResponse:
        invited = find_subject(who, self.request.user)
        if not isinstance(invited, User) or not may_link(self.request.user, invited):
            raise PermissionDenied
        path = new_link(invited, author=self.request.user)
        context = {
            "who": who,
            "link": self.request.build_absolute_uri(path),
            "link_ends": timezone.now() + timedelta(seconds=settings.PASSWORD_RESET_TIMEOUT),
        }
        return self.render_to_response(self.get_context_data(**context))

    def _revoke_token(self) -> HttpResponse:
        subject = find_subject(self.request.GET.get("who", ""), self.request.user)
        shown = panel_of(subject, reader=self.request.user, asked={})
        if not shown.may_revoke:
            return redirect(self._address(shown.key, "tokens"))
        revoked = revoke_sent(self.request.POST, owner=subject)
        messages.success(self.request, f"Revoked: {revoked.name}. Requests with it are refused.")
        return redirect(self._address(shown.key, "tokens"))

    def _known(self, who: str) -> str:
        """The key, as long as the reader still knows of the subject: its last role may be gone."""
        try:
            find_subject(who, self.request.user)
        except Http404:
            return ""
        return who

    def _address(self, who: str, tab: str) -> str:
        query = urlencode({"who": who, "tab": tab})
        return f"{reverse('people')}?{query}" if who else reverse("people")


class RolesView(_RolesPage):
    """All role bindings that a reader knows of, what roles allow, and the history of roles."""

    template_name = "access/roles.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The bindings of a page by subject, and the history for those who see all."""
        reader = self.request.user
        bindings = visible_bindings(reader).select_related("user", "group")
        asked = listed(bindings, self.request, _BINDING_COLUMNS)
        return super().get_context_data(
            **kwargs,
            **asked,
            bindings=[_binding_line(each, reader) for each in asked["page"]],
            role_words=ROLE_WORDS.items(),
            history=services.role_history()[:ROLE_HISTORY] if roles.sees_all(reader) else (),
        )

    def post(self, request: HttpRequest) -> HttpResponse:
        """Revoke a role."""
        if "take" in request.POST:
            self.take()
        return redirect("people-roles")


def _binding_line(bound: RoleBinding, reader: Any) -> dict[str, Any]:
    """A binding with whether the reader may take it back, and its subject's key."""
    at = roles.place_of_binding(bound.cluster, bound.namespace)
    may_take = roles.may(reader, roles.TAKE_ROLES, cluster=at.cluster, namespace=at.namespace)
    key = f"{GROUP}{bound.group}" if bound.group else str(bound.user)
    return {"binding": bound, "may_take": may_take, "key": key}
