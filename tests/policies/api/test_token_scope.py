"""The scope of a token: what its owner's roles grant, and no more than the token allows.

A matrix of tokens over the views: reads show what lies in both scopes, writes need both.
"""

from __future__ import annotations

import json
import uuid
from itertools import product
from typing import TYPE_CHECKING, Any, Final

import pytest
from django.contrib.auth.models import Permission

from admission.models import AuditEvent, decision_id, partitions
from policies import roles
from policies.models import ApiToken, LimitRange, Namespace, RoleBinding
from tests import factories, people
from tests.api_document import document
from tests.api_tokens import call, secret_of

if TYPE_CHECKING:
    from django.contrib.auth.models import User

pytestmark = pytest.mark.django_db
POD: Final = {"type": "Pod", "max": {"cpu": "1"}}
PLACES: Final = [("prod", "team-a"), ("prod", "team-b"), ("prod", "shop"), ("test", "team-a")]
SCOPES: Final = [
    ("", ""),
    ("prod", ""),
    ("", "team-*"),
    ("", "team-a"),
    ("prod", "team-*"),
    ("prod", "shop"),
    ("gone", ""),
]


def covers(scope: tuple[str, str], place: tuple[str, str]) -> bool:
    """Said again in the simplest way, as the check of the product's own."""
    if scope[0] and scope[0] != place[0]:
        return False
    if scope[1].endswith("*"):
        return place[1].startswith(scope[1][:-1])
    return scope[1] in ("", place[1])


@pytest.fixture
def world(db: None) -> dict[tuple[str, str], LimitRange]:
    made = {}
    for number, (cluster, name) in enumerate(PLACES):
        document = factories.manifest("LimitRange", {"limits": [POD]}, name="lr", namespace=name)
        made[cluster, name] = factories.apply(document, in_cluster=cluster)
        event_id = decision_id.encode(1_780_000_000_000, number)
        partitions.ensure(decision_id.moment(event_id))
        names = {"cluster": cluster, "namespace": name, "kind": "Pod", "phase": "validate"}
        AuditEvent(id=event_id, duration_us=1, verdict="allowed", code=200, **names).save()
    return made


def owners() -> dict[str, tuple[Any, list[tuple[str, str]]]]:
    """Owners of tokens, and the scopes in which they are admins."""
    return {
        "admin": (lambda: people.person("admin", "admin"), [("", "")]),
        "cluster": (lambda: people.person("c", "admin", cluster="prod"), [("prod", "")]),
        "team": (lambda: people.person("t", "admin", namespace="team-*"), [("", "team-*")]),
        "two": (_of_two_places, [("prod", "team-a"), ("test", "team-*")]),
        "superuser": (_superuser, [("", "")]),
    }


def _of_two_places() -> User:
    user = people.person("two", "admin", cluster="prod", namespace="team-a")
    people.bind(user, "admin", cluster="test", namespace="team-*")
    return user


def _superuser() -> User:
    user = people.nobody("root")
    user.is_superuser = True
    user.save()
    return user


@pytest.mark.sampled
@pytest.mark.parametrize("owner", sorted(owners()))
@pytest.mark.parametrize("scope", SCOPES, ids="/".join)
def test_every_view_shows_and_writes_what_role_and_token_both_cover(
    world: dict[tuple[str, str], LimitRange], owner: str, scope: tuple[str, str]
) -> None:
    make, bound = owners()[owner]
    user = make()
    both = {
        place for place in PLACES if covers(scope, place) and any(covers(b, place) for b in bound)
    }
    secret = {
        access: secret_of(user, access, cluster=scope[0], namespace=scope[1])
        for access in ("read", "write")
    }
    for access in ("read", "write"):
        assert _shown(secret[access]) == dict.fromkeys(VIEWS, both)
    for place, policy in world.items():
        address = f"limitranges/{policy.pk}/"
        changed = {"cluster": place[0], "metadata": {"name": "lr", "namespace": place[1]}}
        changed["spec"] = {"limits": [POD]}
        hidden = place not in both
        for method, body in (("patch", {"reason": "x"}), ("put", changed), ("delete", None)):
            got = call(secret["write"], method, f"{address}?dryRun=All", body)
            assert got.status_code == (404 if hidden else 200), (place, method, got.content)
        new = {**changed, "metadata": {"name": "new", "namespace": place[1]}}
        made = call(secret["write"], "post", "limitranges/?dryRun=All", new).status_code
        assert (made == 201) is (not hidden)
    assert not LimitRange.objects.filter(name="new").exists()


def _places(answer: Any, of: Any) -> set[tuple[str, str]]:
    assert answer.status_code == 200, answer.content
    return {of(each) for each in answer.json()["results"]}


VIEWS: Final = {
    "limitranges": lambda each: (each["cluster"], each["metadata"]["namespace"]),
    "namespaces": lambda each: (each["cluster"], each["metadata"]["name"]),
    "decisions": lambda each: (each["cluster"], each["namespace"]),
    "revisions": lambda each: (each["cluster"], each["namespace"]),
    "export": None,
    "record": None,
    "simulations": None,
}


def _shown(secret: str) -> dict[str, set[tuple[str, str]]]:
    found = {
        name: _places(call(secret, "get", f"{name}/?limit=100"), of) & set(PLACES)
        for name, of in VIEWS.items()
        if of
    }
    found["export"] = {
        place
        for place in PLACES
        if f"namespace: {place[1]}\n" in _text(call(secret, "get", f"clusters/{place[0]}/export/"))
    }
    rows = _text(call(secret, "get", "/decisions/export.jsonl")).splitlines()
    found["record"] = {(row["cluster"], row["namespace"]) for row in map(json.loads, rows)}
    found["simulations"] = {
        place for place in PLACES if simulated(secret, place).status_code == 200
    }
    return found


def _text(answer: Any) -> str:
    return b"".join(answer).decode() if answer.status_code == 200 else ""


def simulated(secret: str, place: tuple[str, str]) -> Any:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": []}}
    body = {"cluster": place[0], "namespace": place[1], "object": pod}
    return call(secret, "post", "simulations/", body)


def test_details_of_hidden_objects_are_not_there(
    world: dict[tuple[str, str], LimitRange],
) -> None:
    secret = secret_of(people.person(role="admin"), cluster="prod", namespace="team-*")
    hidden = world["prod", "shop"]
    event = AuditEvent.objects.get(cluster="test")
    for address in (
        f"limitranges/{hidden.pk}/",
        f"namespaces/{hidden.namespace_id}/",
        f"namespaces/{hidden.namespace_id}/effective/",
        "clusters/test/",
        "clusters/test/export/",
        f"decisions/{event.pk}/",
        f"decisions/{event.pk}/explanation/",
    ):
        assert call(secret, "get", address).status_code == 404, address
    assert call(secret, "get", f"limitranges/{world['prod', 'team-a'].pk}/").status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("post", "clusters/", {"name": "new"}),
        ("patch", "clusters/prod/", {"description": "x"}),
        ("delete", "clusters/prod/?confirm=prod", None),
        ("post", "namespaces/", {"cluster": "prod", "metadata": {"name": "team-new"}}),
        ("put", "limitedresources/prod/", {"limitedResources": []}),
        ("post", "credentials/", {"cluster": "prod", "label": "x"}),
        ("post", "rolebindings/", {"user": "ada", "role": "admin"}),
        ("post", "rolebindings/", {"user": "ada", "role": "admin", "cluster": "prod"}),
        ("post", "serviceaccounts/", {"name": "ci"}),
    ],
)
@pytest.mark.parametrize("owner", ["admin", "superuser"])
def test_a_token_of_namespaces_writes_nothing_of_the_cluster_or_the_fleet(
    world: dict[tuple[str, str], LimitRange],
    owner: str,
    method: str,
    path: str,
    body: dict[str, Any] | None,
) -> None:
    people.nobody()
    secret = secret_of(owners()[owner][0](), cluster="prod", namespace="team-*")
    assert call(secret, method, path, body).status_code in (403, 404)
    assert secret_of_fleet_may(owner, method, path, body)


def secret_of_fleet_may(owner: str, method: str, path: str, body: Any) -> bool:
    """The same request with a token of the whole fleet passes, so that the scope refused it."""
    user = RoleBinding._meta.get_field("user").related_model.objects.get(
        username={"admin": "admin", "superuser": "root"}[owner]
    )
    joint = "&" if "?" in path else "?"
    answer = call(secret_of(user), method, f"{path}{joint}dryRun=All", body)
    return bool(answer.status_code in (200, 201))


READS_WITH_POST: Final = {
    "post changes/{id}/replay/",
    "post namespaceclasses/preview/",
    "post replays/",
    "post replays/{uid}/cancel/",
    "post simulations/",
    "post simulations/classrestarts/",
    "post simulations/restarts/",
    "post tests/run/",
}


def test_a_token_to_read_writes_nothing_whatever_its_owner_may(
    world: dict[tuple[str, str], LimitRange],
) -> None:
    secret = secret_of(_superuser(), "read")
    policy = world["prod", "shop"]
    body = {"cluster": "prod", "metadata": {"name": "new", "namespace": "shop"}}
    refused = set()
    for path, method in _writes():
        name = f"{method} {path.removeprefix('/api/v1/')}"
        if path == "/api/v1/token/" or name in READS_WITH_POST:
            continue
        answer = call(secret, method, _filled(path, method, policy.pk), body)
        assert (name, answer.status_code) == (name, 403)
        assert answer.json()["detail"] == "This token may read only."
        refused.add(name)
    assert len(refused) > 25
    assert simulated(secret, ("prod", "shop")).status_code == 200


def _writes() -> list[tuple[str, str]]:
    """Every operation of the API that is no read."""
    paths = {path: each for path, each in document()["paths"].items() if "/api/v1/" in path}
    writes = ("post", "put", "patch", "delete")
    return [(path, method) for path, each in paths.items() for method in each if method in writes]


def _filled(path: str, method: str, key: int) -> str:
    """The address of an operation, with values of the right types."""
    for parameter in document()["paths"][path][method].get("parameters", ()):
        schema = parameter["schema"]
        is_uuid = "36" in schema.get("pattern", "") or schema.get("format") == "uuid"
        value = str(uuid.uuid4()) if is_uuid else "prod"
        value = str(key) if schema["type"] == "integer" else value
        path = path.replace(f"{{{parameter['name']}}}", value)
    return path


@pytest.mark.parametrize(
    ("token", "code"), [({"cluster": "prod"}, 200), ({"cluster": "test"}, 404), ({}, 200)]
)
def test_permissions_beside_roles_are_limited_too(
    world: dict[tuple[str, str], LimitRange], token: dict[str, str], code: int
) -> None:
    user = people.person()
    user.user_permissions.add(Permission.objects.get(codename="change_limitrange"))
    address = f"limitranges/{world['prod', 'shop'].pk}/"
    assert call(secret_of(user, **token), "patch", address, {"reason": "x"}).status_code == code
    assert call(secret_of(user, "read", **token), "patch", address, {}).status_code == 403


def test_a_role_that_ends_ends_for_its_tokens() -> None:
    factories.limit_range(POD)
    user = people.person(role="editor")
    secret = secret_of(user)
    assert call(secret, "get", "limitranges/").json()["count"] == 1
    RoleBinding.objects.all().delete()
    assert call(secret, "get", "limitranges/").json()["count"] == 0


def test_a_token_of_somebody_without_roles_shows_nothing() -> None:
    factories.limit_range(POD)
    secret = secret_of(people.nobody())
    assert call(secret, "get", "limitranges/").json()["count"] == 0


def test_rules_agree_on_the_places_of_two_scopes() -> None:
    for cluster, name in PLACES:
        factories.namespace(name, in_cluster=cluster)
    for number, (one, other) in enumerate(product(SCOPES, SCOPES)):
        user = people.person(f"user{number}", "editor", cluster=one[0], namespace=one[1])
        token = ApiToken(access="write", cluster=other[0], namespace=other[1])
        roles.limit(user, token)
        expected = {place for place in PLACES if covers(one, place) and covers(other, place)}
        assert _by_rules(user) == [expected] * 3, (one, other)
        assert roles.sees_all(user) is not (any(one) or any(other))


def _by_rules(user: User) -> list[set[tuple[str, str]]]:
    edit = "policies.change_limitrange"
    rows = roles.visible(Namespace.objects.all(), user, cluster="cluster__name", namespace="name")
    return [
        {(each.cluster.name, each.name) for each in rows} & {*PLACES},
        {place for place in PLACES if roles.sees(user, *place)},
        {p for p in PLACES if roles.may(user, edit, cluster=p[0], namespace=p[1])},
    ]


def test_a_token_to_read_may_plan_an_apply_and_not_apply() -> None:
    factories.cluster()
    secret = secret_of(people.person("ci", "admin"), access="read")
    body = {"cluster": "prod", "set": "platform", "documents": []}
    assert call(secret, "post", "apply/?dryRun=All", body).status_code == 200
    assert call(secret, "post", "apply/", body).status_code == 403
    assert call(secret, "post", "apply/", {**body, "dryRun": True}).status_code == 403
