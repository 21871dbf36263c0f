"""People for tests: with a role somewhere, or with none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib.auth import get_user_model

from policies.models import RoleBinding

if TYPE_CHECKING:
    from django.contrib.auth.models import User


def person(
    name: str = "ada", role: str = "viewer", *, cluster: str = "", namespace: str = ""
) -> User:
    """Somebody with one role; of everything that is stored unless the scope is narrower."""
    made = nobody(name)
    bind(made, role, cluster=cluster, namespace=namespace)
    return made


def nobody(name: str = "ada") -> User:
    """Somebody without any role."""
    return get_user_model().objects.create_user(name, password="right-horse")


def bind(user: User, role: str, *, cluster: str = "", namespace: str = "") -> RoleBinding:
    return RoleBinding.objects.create(user=user, role=role, cluster=cluster, namespace=namespace)
