"""PersonPanel: one account or group beside the list: access, sources, tokens."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from django.contrib.auth.models import Group

from policies import roles, services
from policies.models import PolicyRevision, SignIn
from portal.auth.invitations import may_link
from portal.pages.access import effective_access
from portal.pages.access.subjects import GROUP, visible_bindings
from portal.pages.access.words import initials, place_in_short

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from policies.models import ApiToken, RoleBinding
    from portal.pages.access.effective_access import Answer, MatrixRow

PLACES_OFFERED: Final = 200
ACTIVITY_SHOWN: Final = 10
MEMBERS_SHOWN: Final = 20


@dataclass(frozen=True, slots=True)
class AccessSource:
    """A role that the subject has: where, by which group, and whether the reader may revoke it."""

    binding: RoleBinding
    place: str
    group: str
    may_take: bool


@dataclass(frozen=True, slots=True)
class PanelTab:
    """A tab of the panel; ``number`` is None where nothing is counted."""

    key: str
    label: str
    number: int | None = None


@dataclass(frozen=True, slots=True)
class PersonPanel:
    """What the panel shows of a subject to a reader."""

    key: str
    name: str
    initials: str
    subject: Any
    is_group: bool
    answer: Answer | None
    asked_place: str
    rows: Sequence[MatrixRow]
    places: Sequence[str]
    sources: Sequence[AccessSource]
    tokens: Sequence[ApiToken]
    members: Sequence[Any]
    changes: Sequence[PolicyRevision]
    sign_ins: Sequence[SignIn]
    may_revoke: bool
    may_link: bool
    tab: str

    @property
    def tabs(self) -> list[PanelTab]:
        """What the panel has; tokens are for their owner and for keepers of accounts."""
        tabs = [
            PanelTab("access", "Effective access"),
            PanelTab("roles", "Roles", len(self.sources)),
        ]
        if self.is_group:
            return [*tabs, PanelTab("members", "Members", len(self.members))]
        if self.may_revoke:
            tabs.append(PanelTab("tokens", "Tokens", len(self.tokens)))
        return [*tabs, PanelTab("activity", "Activity")]

    @property
    def sources_here(self) -> list[AccessSource]:
        """The roles that cover the place that is asked about; all where none is."""
        place = effective_access.parts_of(self.asked_place)
        if not self.answer or not place.cluster:
            return list(self.sources)
        return [
            each for each in self.sources if each.binding.covers(place.cluster, place.namespace)
        ]


def panel_of(subject: Any, *, reader: Any, asked: Mapping[str, str]) -> PersonPanel:
    """The panel; ``ask`` and ``in`` are the question's key and place."""
    is_group = isinstance(subject, Group)
    places = effective_access.places_of(reader)
    rows = effective_access.matrix(subject, places)
    place_words = asked.get("in", "") or _first_place(subject, places)
    place = effective_access.place_of(place_words, reader=reader)
    question = effective_access.question_of(asked.get("ask", ""))
    answer = effective_access.answer(subject, question, place, reader=reader) if place else None
    name = subject.name if is_group else subject.get_full_name() or subject.username
    may_revoke = not is_group and _may_revoke(subject, reader)
    panel = PersonPanel(
        key=f"{GROUP}{subject.name}" if is_group else subject.username,
        name=name,
        initials=initials(name),
        subject=subject,
        is_group=is_group,
        answer=answer,
        asked_place=place_words,
        rows=rows,
        places=[place_in_short(each.cluster, each.namespace) for each in places[:PLACES_OFFERED]],
        sources=_sources(subject, reader),
        tokens=services.tokens_of(subject, reader=subject) if may_revoke else (),
        members=_members(subject) if is_group else (),
        changes=_changes(subject, reader) if asked.get("tab") == "activity" else (),
        sign_ins=_sign_ins(subject) if may_revoke and asked.get("tab") == "activity" else (),
        may_revoke=may_revoke,
        may_link=not is_group and may_link(reader, subject),
        tab=asked.get("tab", ""),
    )
    if panel.tab in {tab.key for tab in panel.tabs}:
        return panel
    return replace(panel, tab=panel.tabs[0].key)


def _first_place(subject: Any, places: Sequence[roles.RoleScope]) -> str:
    """A namespace in which the subject has a role, or any: a question to begin with."""
    bindings = effective_access.bindings_of(subject)
    covered = (
        each
        for each in places
        if any(binding.covers(each.cluster, each.namespace) for binding in bindings)
    )
    first = next(covered, places[0] if places else None)
    return place_in_short(first.cluster, first.namespace) if first else ""


def _may_revoke(user: Any, reader: Any) -> bool:
    """Tokens are shown to their owner and to keepers of accounts; a superuser's to superusers."""
    if user.pk == reader.pk:
        return True
    return roles.may(reader, roles.KEEP_ACCOUNTS) and (reader.is_superuser or not user.is_superuser)


def _sources(subject: Any, reader: Any) -> Sequence[AccessSource]:
    """The roles that the reader knows of, own ones first."""
    bindings = visible_bindings(reader).select_related("user", "group")
    if isinstance(subject, Group):
        mine = list(bindings.filter(group=subject))
    else:
        mine = [
            *bindings.filter(user=subject),
            *bindings.filter(group__in=subject.groups.all()),
        ]
    return [_source(each, subject, reader) for each in mine]


def _source(binding: RoleBinding, subject: Any, reader: Any) -> AccessSource:
    at = roles.place_of_binding(binding.cluster, binding.namespace)
    is_by_group = binding.group is not None and not isinstance(subject, Group)
    return AccessSource(
        binding,
        place_in_short(binding.cluster, binding.namespace),
        binding.group.name if is_by_group and binding.group else "",
        # A group's role is taken from the group, not from one of its members.
        may_take=not is_by_group
        and roles.may(reader, roles.TAKE_ROLES, cluster=at.cluster, namespace=at.namespace),
    )


def _members(group: Any) -> Sequence[Any]:
    return list(group.user_set.filter(is_active=True).order_by("username")[:MEMBERS_SHOWN])


def _sign_ins(subject: Any) -> Sequence[SignIn]:
    """The newest tries to sign in: for those who may see the account's tokens."""
    return list(SignIn.objects.filter(user=subject)[:ACTIVITY_SHOWN])


def _changes(subject: Any, reader: Any) -> Sequence[PolicyRevision]:
    """The newest changes of policies by an account, as far as the reader sees them."""
    seen = roles.visible(
        PolicyRevision.objects.all(), reader, cluster="cluster", namespace="namespace"
    )
    by_user = seen.filter(user=str(subject)).order_by("-created", "-pk")
    return list(by_user[:ACTIVITY_SHOWN])
