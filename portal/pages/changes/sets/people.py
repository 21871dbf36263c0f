"""Person of a change: the full name and initials of a username; one query for many."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.contrib.auth import get_user_model

from portal.pages.access.words import initials

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class NamedPerson:
    """Who did something; steps name accounts that may be gone, or programs."""

    username: str
    name: str

    @property
    def initials(self) -> str:
        """Two letters that stand for the name."""
        return initials(self.name)


def people_of(usernames: Iterable[str]) -> dict[str, NamedPerson]:
    """The people by username; an account without a full name is called by its username."""
    wanted = set(usernames)
    accounts = get_user_model().objects.filter(username__in=wanted) if wanted else ()
    names = {each.get_username(): each.get_full_name() for each in accounts}
    return {username: NamedPerson(username, names.get(username) or username) for username in wanted}
