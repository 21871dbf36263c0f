"""Role bindings: what is seen and done by whom, over the API and by the rules themselves."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.db import IntegrityError
from django.test import Client

from policies import roles
from policies.models import LimitRange, Namespace, RoleBinding
from tests import factories, people

if TYPE_CHECKING:
    from django.contrib.auth.models import User

pytestmark = pytest.mark.django_db
POD = {"type": "Pod", "max": {"cpu": "1"}}
EDIT = "policies.change_limitrange"


def test_nobody_sees_anything_without_a_role() -> None:
    factories.limit_range(POD)
    user = people.nobody()
    assert not roles.sees(user, "prod")
    assert not roles.may_somewhere(user, EDIT)
    assert not seen(user)


@pytest.mark.parametrize(
    ("cluster", "namespace", "expected"),
    [
        ("", "", {"prod/team-a", "prod/team-b", "test/team-a"}),
        ("prod", "", {"prod/team-a", "prod/team-b"}),
        ("", "team-a", {"prod/team-a", "test/team-a"}),
        ("prod", "team-*", {"prod/team-a", "prod/team-b"}),
        ("prod", "team-b", {"prod/team-b"}),
        ("prod", "team", set()),
        ("elsewhere", "", set()),
    ],
)
def test_a_scope_is_what_is_seen(cluster: str, namespace: str, expected: set[str]) -> None:
    for name, in_cluster in (("team-a", "prod"), ("team-b", "prod"), ("team-a", "test")):
        factories.namespace(name, in_cluster=in_cluster)
    user = people.person(cluster=cluster, namespace=namespace)
    rows = Namespace.objects.all()
    found = roles.visible(rows, user, cluster="cluster__name", namespace="name")
    assert {str(each) for each in found} == expected
    singly = {str(each) for each in rows if roles.sees(user, each.cluster.name, each.name)}
    assert singly == expected


def seen(user: User) -> list[LimitRange]:
    names = {"cluster": "namespace__cluster__name", "namespace": "namespace__name"}
    return list(roles.visible(LimitRange.objects.all(), user, **names))


def test_a_namespace_is_not_its_cluster() -> None:
    user = people.person(role="admin", cluster="prod", namespace="team")
    assert roles.sees(user, "prod")
    assert not roles.sees(user, "prod", "")
    assert roles.may(user, EDIT, cluster="prod", namespace="team")
    assert not roles.may(user, EDIT, cluster="prod")
    assert not roles.may(user, EDIT)


@pytest.mark.parametrize(
    ("role", "may"),
    [("viewer", ""), ("auditor", "h"), ("editor", "e"), ("approver", "a"), ("admin", "aehc")],
)
def test_what_each_role_may_do(role: str, may: str) -> None:
    user = people.person(role=role, cluster="prod")
    permissions = {
        "e": EDIT,
        "a": "sync.change_syncedobject",
        "h": "admission.add_audithold",
        "c": "sync.add_clusterconnection",
    }
    found = {key for key, name in permissions.items() if roles.may(user, name, cluster="prod")}
    assert found == set(may)


def test_groups_have_roles_too() -> None:
    user, group = people.nobody(), Group.objects.create(name="platform")
    user.groups.add(group)
    RoleBinding.objects.create(group=group, role="editor")
    assert roles.may(user, EDIT)
    user.is_active = False
    assert not user.has_perm(EDIT)


def test_a_binding_has_one_subject() -> None:
    with pytest.raises(ValidationError):
        RoleBinding(role="viewer").full_clean()
    with pytest.raises(IntegrityError):
        RoleBinding.objects.create(role="viewer")


@pytest.mark.parametrize("name", ["*", "Team", "a b", "-x", "a*b"])
def test_a_namespace_of_a_binding_is_a_name_or_its_beginning(name: str) -> None:
    with pytest.raises(ValidationError):
        RoleBinding(user=people.nobody(), role="viewer", namespace=name).full_clean()


def api(user: User, method: str, path: str, body: Any = None) -> Any:
    client = Client()
    client.force_login(user)
    data = {} if body is None else {"data": json.dumps(body), "content_type": "application/json"}
    return getattr(client, method)(f"/api/v1/{path}", **data)


def test_the_api_hides_what_is_not_seen_and_refuses_what_is_not_allowed() -> None:
    policy = factories.limit_range(POD)
    other = people.person("other", "editor", cluster="prod", namespace="elsewhere")
    assert api(other, "get", f"limitranges/{policy.pk}/").status_code == 404
    assert api(other, "delete", f"limitranges/{policy.pk}/").status_code == 404
    assert api(other, "get", "limitranges/").json()["count"] == 0
    viewer = people.person("viewer", cluster="prod", namespace="team")
    assert api(viewer, "delete", f"limitranges/{policy.pk}/").status_code == 403
    editor = people.person("editor", "editor", cluster="prod", namespace="team")
    assert api(editor, "delete", f"limitranges/{policy.pk}/").status_code == 204


@pytest.mark.parametrize(("namespace", "code"), [("team", 201), ("elsewhere", 403)])
def test_an_editor_makes_policies_at_home_only(namespace: str, code: int) -> None:
    factories.namespace()
    editor = people.person("editor", "editor", cluster="prod", namespace="team")
    body = {
        "cluster": "prod",
        "metadata": {"name": "lr", "namespace": namespace},
        "spec": {"limits": [POD]},
    }
    assert api(editor, "post", "limitranges/", body).status_code == code
    assert LimitRange.objects.exists() == (code == 201)


def test_clusters_one_does_not_see_are_unknown() -> None:
    factories.cluster("secret")
    editor = people.person("editor", "editor", cluster="prod", namespace="team")
    body = {"cluster": "secret", "metadata": {"name": "lr", "namespace": "team"}, "spec": {}}
    answer = api(editor, "post", "limitranges/", body)
    assert (answer.status_code, list(answer.json()["errors"])) == (400, ["cluster"])


def test_a_credential_for_a_hidden_cluster_is_answered_as_for_none() -> None:
    factories.cluster("prod")
    factories.cluster("secret")
    admin = people.person("admin", "admin", cluster="prod")
    answers = [
        api(admin, "post", "credentials/", {"cluster": name, "label": "l"})
        for name in ("secret", "nowhere")
    ]
    assert [answer.status_code for answer in answers] == [400, 400]
    texts = [answer.content.decode() for answer in answers]
    assert texts[0].replace("secret", "nowhere") == texts[1]


def test_restoring_needs_the_right_to_write() -> None:
    factories.limit_range(POD)
    number = api(people.person("a", "admin"), "get", "revisions/").json()["results"][0]["id"]
    path = f"revisions/{number}/restore/"
    assert api(people.person("viewer"), "post", path).status_code == 403
    assert api(people.person("editor", "editor"), "post", path, {}).status_code == 200


@pytest.mark.parametrize(
    ("cluster", "namespace", "code"),
    [("prod", "", 200), ("prod", "team", 404), ("test", "", 404)],
)
def test_pages_of_a_cluster_open_for_who_sees_all_of_it(
    cluster: str, namespace: str, code: int
) -> None:
    factories.cluster()
    client = Client()
    client.force_login(people.person(cluster=cluster, namespace=namespace))
    assert client.get("/clusters/prod/").status_code == code
    assert (b'href="/clusters/prod/"' in client.get("/clusters/").content) == (code == 200)
