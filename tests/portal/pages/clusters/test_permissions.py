"""Every form of the pages about clusters: who is sent away, who is refused, who is let in."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.utils import timezone

from policies.models import Cluster, PolicyRevision
from sync.models import ClusterConnection, SyncedObject, SyncOwnership, SyncResult, SyncRun
from tests import factories, people

pytestmark = pytest.mark.django_db
RUN = "00000000-0000-0000-0000-000000000007"
OBJECT = "/clusters/prod/objects/ResourceQuota/team/rq/"
FORMS = [
    ("/clusters/-/connect/", {"name": "prod", "text": "{"}, "add_clusterconnection"),
    ("/clusters/prod/authority/", {"authority": "native", "reason": "why"}, "change_cluster"),
    (
        "/clusters/prod/excluded-namespaces/",
        {"namespaces": "ci", "reason": "why"},
        "change_cluster",
    ),
    (
        "/clusters/prod/failure-policy/",
        {"failure_policy": "Ignore", "reason": "why"},
        "change_cluster",
    ),
    (OBJECT, {"take": "theirs"}, "change_syncedobject"),
    (OBJECT, {"take": "choices", "choice-0": "ours"}, "change_syncedobject"),
    (OBJECT, {"take": "undo", "number": "1"}, "change_syncedobject"),
    (OBJECT, {"take": "ownership"}, "change_syncedobject"),
    ("/clusters/prod/ownership/", {"namespace": "team"}, "add_syncownership"),
    ("/clusters/prod/ownership/", {"release": "7"}, "delete_syncownership"),
    ("/clusters/prod/ownership/", {"scope": "cluster", "do": "take"}, "add_syncownership"),
    ("/clusters/prod/ownership/", {"scope": "cluster", "do": "release"}, "delete_syncownership"),
    ("/clusters/prod/pause/", {"do": "pause", "reason": "why"}, "change_clusterconnection"),
    ("/clusters/prod/pause/", {"do": "resume"}, "change_clusterconnection"),
    ("/clusters/prod/runs/", {"mode": "sync"}, "add_syncrun"),
    (f"/clusters/prod/runs/{RUN}/", {"read": "yes", "held": "1"}, "change_syncrun"),
]
NAMES = [f"{address} {' '.join(given.values())}" for address, given, _ in FORMS]
READ_ONLY = (
    "/clusters/",
    "/clusters/prod/",
    "/clusters/prod/objects/",
    f"/clusters/prod/runs/{RUN}/progress",
)


@pytest.fixture(autouse=True)
def cluster() -> Cluster:
    """A cluster with a conflict, a held run and something owned, so that every form has its use."""
    made, now = factories.cluster("prod"), timezone.now()
    ClusterConnection.objects.create(cluster=made, server="https://x", method="token", sealed=b"x")
    factories.resource_quota({"pods": "20"})
    names = {"kind": "ResourceQuota", "namespace": "team", "name": "rq"}
    theirs = factories.manifest("ResourceQuota", {"hard": {"pods": "30"}}, name="rq")
    SyncedObject.objects.create(
        cluster=made, state="conflict", since=now, seen=now, theirs=theirs, live=theirs, **names
    )
    SyncOwnership.objects.create(pk=7, cluster=made, user="x")
    run = SyncRun.objects.create(
        uid=RUN, cluster=made, mode="import", trigger="person", state="held"
    )
    SyncResult.objects.create(run=run, action="delete", outcome="held", **names)
    return made


def signed_in(*permissions: str) -> Client:
    client, person = Client(), people.person("ada")
    person.user_permissions.add(*Permission.objects.filter(codename__in=permissions))
    client.force_login(person)
    return client


def everything() -> dict[str, Any]:
    """What a form could have changed."""
    models = (Cluster, ClusterConnection, PolicyRevision, SyncedObject, SyncOwnership, SyncRun)
    return {model.__name__: list(model.objects.order_by("pk").values()) for model in models}


def seen(client: Client, address: str) -> dict[str, str]:
    return {"seen": client.get(address).context["seen"]} if address == OBJECT else {}


@pytest.mark.parametrize(("address", "given", "_permission"), FORMS, ids=NAMES)
def test_strangers_are_sent_to_sign_in(
    client: Client, address: str, given: dict[str, str], _permission: str
) -> None:
    before = everything()
    response = client.post(address, given)
    assert (response.status_code, response["Location"].split("?")[0]) == (302, "/accounts/login/")
    assert everything() == before


@pytest.mark.sampled
@pytest.mark.parametrize(("address", "given", "permission"), FORMS, ids=NAMES)
def test_viewers_are_refused_and_nothing_changes(
    address: str, given: dict[str, str], permission: str
) -> None:
    others = {needed for *_, needed in FORMS} - {permission}
    viewer = signed_in(*others)
    before = everything()
    assert viewer.post(address, {**given, **seen(viewer, address)}).status_code == 403
    assert everything() == before


@pytest.mark.sampled
@pytest.mark.parametrize(("address", "given", "_permission"), FORMS, ids=NAMES)
def test_admins_are_let_in(
    admin_client: Client, address: str, given: dict[str, str], _permission: str
) -> None:
    response = admin_client.post(address, {**given, **seen(admin_client, address)})
    assert response.status_code in (302, 422)
    assert "/accounts/login/" not in response.headers.get("Location", "")


@pytest.mark.parametrize("address", READ_ONLY)
def test_pages_without_a_form_take_none(admin_client: Client, address: str) -> None:
    before = everything()
    assert admin_client.post(address, {"mode": "sync"}).status_code in (403, 405)
    assert everything() == before


TARGETS = (
    "/clusters/prod/excluded-namespaces/",
    "/clusters/prod/failure-policy/",
    "/clusters/prod/pause/",
)
"""Addresses that only take forms."""
PAGES = sorted({address for address, *_ in FORMS if address not in TARGETS} | set(READ_ONLY))


@pytest.mark.parametrize("address", PAGES)
def test_viewers_see_no_button_of_these_pages(address: str) -> None:
    page = signed_in().get(address).content.decode()
    main = page.split("<main")[-1].split("</main")[0]
    assert 'method="post"' not in main


@pytest.mark.parametrize(("address", "given", "_permission"), FORMS[1:], ids=NAMES[1:])
def test_another_cluster_is_not_there_for_anybody(
    admin_client: Client, address: str, given: dict[str, str], _permission: str
) -> None:
    assert admin_client.post(address.replace("prod", "nobody"), given).status_code == 404
