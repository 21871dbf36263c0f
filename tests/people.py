"""Users for tests: with a role in a scope, or with none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib.auth import get_user_model
from django.test import Client

from policies.models import RoleBinding

if TYPE_CHECKING:
    from django.contrib.auth.models import User


def person(
    name: str = "ada", role: str = "viewer", *, cluster: str = "", namespace: str = ""
) -> User:
    """A user with one role, in every scope unless the arguments narrow it."""
    made = nobody(name)
    bind(made, role, cluster=cluster, namespace=namespace)
    return made


def nobody(name: str = "ada") -> User:
    """A user without any role."""
    return get_user_model().objects.create_user(name, password="right-horse")


def bind(user: User, role: str, *, cluster: str = "", namespace: str = "") -> RoleBinding:
    return RoleBinding.objects.create(user=user, role=role, cluster=cluster, namespace=namespace)


def signed_in(user: User) -> Client:
    """A browser in which the user is signed in."""
    client = Client()
    client.force_login(user)
    return client
