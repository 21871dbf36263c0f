"""Roles and names in short words."""

from __future__ import annotations

import pytest

from policies.models import RoleBinding
from portal.pages.access.words import initials, roles_in_short


def bound(role: str, cluster: str = "", namespace: str = "") -> RoleBinding:
    return RoleBinding(role=role, cluster=cluster, namespace=namespace)


@pytest.mark.parametrize(
    ("bindings", "words"),
    [
        ([], ""),
        ([bound("admin")], "admin, whole fleet"),
        ([bound("editor", "", "a-*"), bound("editor", "", "a-*")], "editor a-*"),
        ([bound("admin", "prod"), bound("viewer", "test", "a")], "viewer test / a; admin prod"),
        ([bound("admin", "prod"), bound("admin", "test")], "admin prod, test"),
    ],
)
def test_roles_of_one_kind_stand_together(bindings: list[RoleBinding], words: str) -> None:
    assert roles_in_short(bindings) == words


@pytest.mark.parametrize(
    ("name", "letters"),
    [("Grace Mbeki", "GM"), ("grace.mbeki", "GM"), ("admin", "AD"), ("", ""), ("sre-oncall", "SO")],
)
def test_initials_are_of_the_first_and_the_last_name(name: str, letters: str) -> None:
    assert initials(name) == letters
