"""Permissions are asked of policies.roles alone, which knows what a token allows."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.architecture.test_size_and_words import MODULES, ROOT, nodes, place

ASKED_BY: dict[str, set[str]] = {
    "has_perm": {
        "policies/roles.py",
        "policies/admin.py",  # Django's admin has sessions only
    },
    "is_superuser": {
        "policies/roles.py",
        "policies/services/tokens.py",  # of the owner of a token
        "portal/auth/admin.py",  # Django's admin has sessions only
        "portal/auth/invitations.py",  # of the account that a link hands over; asked by pages
        "portal/pages/home/page.py",  # pages have sessions only
        "portal/pages/access/person.py",  # of the account whose access is shown
        "portal/pages/access/subjects.py",  # the same, in its row
    },
}
KNOX: dict[str, set[str]] = {
    "policies/models/tokens.py": {"AbstractAuthToken"},
    "policies/tokens/authentication.py": {"TokenAuthentication"},
    "admission/api/token_and_schema.py": {"LoginView", "get_token_model"},
    "portal/tasks.py": {"get_token_model"},
}


def test_permissions_are_asked_of_the_rules_of_roles() -> None:
    found = {
        (node.attr, str(path.relative_to(ROOT)))
        for path, node in nodes(MODULES)
        if isinstance(node, ast.Attribute) and node.attr in ASKED_BY
    }
    assert {each for each in found if each[1] not in ASKED_BY[each[0]]} == set()


def test_a_token_becomes_a_user_in_one_place() -> None:
    imported: dict[str, set[str]] = {}
    for path, node in nodes(MODULES):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("knox"):
            names = {alias.name for alias in node.names}
            imported.setdefault(str(path.relative_to(ROOT)), set()).update(names)
        assert not isinstance(node, ast.Import) or "knox" not in _imported(node), place(path, node)
    assert imported == KNOX


def _imported(node: ast.Import) -> set[str]:
    return {alias.name.partition(".")[0] for alias in node.names}


def test_the_modules_that_are_named_here_exist() -> None:
    named = {name for names in ASKED_BY.values() for name in names} | set(KNOX)
    assert {name for name in named if not Path(ROOT, name).exists()} == set()
