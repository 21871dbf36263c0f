"""Every list of the portal, with more rows than a page has: searched, sorted, paged, acted on."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import transaction
from django.utils import timezone

from admission.models import AuditEvent, AuditHold, Replay, decision_id, partitions
from policies import services
from policies.models import (
    ApiToken,
    ClassMember,
    KeptTest,
    LimitRange,
    Namespace,
    NamespaceClass,
    PolicyRevision,
    RoleBinding,
)
from policies.services import changes
from sync.models import ClusterConnection, SyncedObject, SyncResult, SyncRun
from tests import factories
from tests.namespace_classes import class_manifest

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client

pytestmark = pytest.mark.django_db
RUN: Final = "6f1c1d52-0000-4000-8000-000000000001"
NAMES: Final = [f"item-{number:02}" for number in range(60)]
TEMPLATES: Final = Path(settings.BASE_DIR) / "templates"
_ROWS: Final = re.compile(r"<(table|ul)[^>]*\sdata-rows.*?</\1>", re.DOTALL)
_TAG: Final = re.compile(r"<[^>]+>")
_NAME: Final = re.compile(r"\bitem-\d\d\b")
_NEXT: Final = re.compile(r'href="([^"]+)" rel="next"')
_SORTS: Final = re.compile(r'<th[^>]*>\s*<a href="(\?[^"]*(?:sort|order)=[^"]*)"')


def namespaces() -> None:
    cluster = factories.cluster()
    Namespace.objects.bulk_create(Namespace(cluster=cluster, name=name) for name in NAMES)


def policies() -> None:
    namespace = factories.namespace()
    LimitRange.objects.bulk_create(LimitRange(namespace=namespace, name=name) for name in NAMES)


def quotas() -> None:
    namespaces()
    for place in Namespace.objects.all():
        spec = {"hard": {"pods": "3"}}
        manifest = factories.manifest("ResourceQuota", spec, name=place.name, namespace=place.name)
        factories.apply(manifest)


def limited() -> None:
    namespaces()
    LimitRange.objects.bulk_create(
        LimitRange(namespace=each, name="limits") for each in Namespace.objects.all()
    )


def clusters() -> None:
    for name in NAMES:
        factories.cluster(name)


def drift() -> None:
    cluster, now = factories.cluster(), timezone.now()
    ClusterConnection.objects.create(
        cluster=cluster, server="https://x", method="token", sealed=b"", key_id="k", state="ok"
    )
    fields: dict[str, Any] = {"cluster": cluster, "kind": "ResourceQuota", "state": "drifted"}
    SyncedObject.objects.bulk_create(
        SyncedObject(namespace="team", name=name, since=now, seen=now, **fields) for name in NAMES
    )


def history() -> None:
    PolicyRevision.objects.bulk_create(
        PolicyRevision(
            cluster="prod", kind="LimitRange", namespace="team", name=name, number=1,
            action="create", user="ada",
        )
        for name in NAMES
    )  # fmt: skip


def decisions() -> None:
    moment = datetime.now(UTC) - timedelta(minutes=5)
    partitions.ensure(moment)
    for number, name in enumerate(NAMES):
        AuditEvent(
            id=decision_id.encode(int(moment.timestamp() * 1000) + number, number),
            cluster="prod", namespace=name, name=name, kind="Pod", verdict="denied", code=403,
            duration_us=1, phase="validate", request_uid=name,
        ).save()  # fmt: skip


def persons() -> None:
    user_model = get_user_model()
    user_model.objects.bulk_create(user_model(username=name) for name in NAMES)


def bindings() -> None:
    persons()
    RoleBinding.objects.bulk_create(
        RoleBinding(user=user, role="viewer", created_by="ada")
        for user in get_user_model().objects.filter(username__in=NAMES)
    )


def accounts() -> None:
    author = get_user_model().objects.create_superuser("keeper")
    for name in NAMES:
        services.create_service_account(name=name, description="", author=author)


def sign_ins() -> None:
    persons()
    # Later than the one who looks: the newest come first.
    later = timezone.now() + timedelta(hours=1)
    get_user_model().objects.filter(username__in=NAMES).update(last_login=later)


def tokens() -> None:
    persons()
    for user in get_user_model().objects.filter(username__in=NAMES):
        ApiToken.objects.create(user=user, name="apply")


def holds() -> None:
    today = timezone.now().date()
    AuditHold.objects.bulk_create(
        AuditHold(cluster="prod", namespace=name, first_day=today, reason="asked") for name in NAMES
    )


def classes() -> None:
    NamespaceClass.objects.bulk_create(
        NamespaceClass(name=name, version=1, manifest=class_manifest(name)) for name in NAMES
    )


def proposed() -> None:
    for name in NAMES:
        changes.create_change(title=name, user="ada")


def kept_tests() -> None:
    namespace = factories.namespace()
    KeptTest.objects.bulk_create(KeptTest(namespace=namespace, name=name) for name in NAMES)


def members() -> None:
    stored = NamespaceClass.objects.create(
        name="every", version=1, manifest=class_manifest("every")
    )
    namespaces()
    ClassMember.objects.bulk_create(
        ClassMember(namespace_class=stored, namespace=each, version=1)
        for each in Namespace.objects.all()
    )


def replays() -> None:
    cluster, now = factories.cluster(), timezone.now()
    Replay.objects.bulk_create(
        Replay(cluster=cluster.name, since=now, until=now, proposal="{}", user=name)
        for name in NAMES
    )


def runs() -> None:
    cluster = factories.cluster()
    SyncRun.objects.bulk_create(
        SyncRun(cluster=cluster, mode="import", state="done", user=name) for name in NAMES
    )


def results() -> None:
    run = SyncRun.objects.create(
        cluster=factories.cluster(), mode="import", state="done", uid=RUN, total=60
    )
    SyncResult.objects.bulk_create(
        SyncResult(run=run, kind="LimitRange", namespace="team", name=name, outcome="done")
        for name in NAMES
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class List:
    """A list: its address, what fills it, the field that searches, and what a row may be."""

    address: str
    made_by: Callable[[], None]
    search: str
    picks: str = ""
    """What is in the page where rows can be picked; empty where no action takes many."""
    by_time: bool = False
    """Whether it is a log: one goes on from row to row, not to a page by its number."""


LISTS: Final = {
    "policies": List(address="/policies/", made_by=policies, search="words", picks='name="pick"'),
    "quotas": List(address="/quotas/", made_by=quotas, search="q", picks='name="quota"'),
    "namespaces": List(address="/namespaces/", made_by=namespaces, search="q"),
    "namespaces of a cluster": List(
        address="/clusters/prod/namespaces/", made_by=namespaces, search="q"
    ),
    "clusters": List(address="/clusters/", made_by=clusters, search="q"),
    "drift": List(address="/drift/", made_by=drift, search="q", picks='name="object"'),
    "drift of a cluster": List(
        address="/clusters/prod/objects/", made_by=drift, search="q", picks='name="object"'
    ),
    "runs": List(address="/clusters/prod/runs/", made_by=runs, search="q"),
    "results of a run": List(address=f"/clusters/prod/runs/{RUN}/", made_by=results, search="q"),
    "enforcement": List(address="/clusters/prod/enforcement/", made_by=limited, search="q"),
    "changes": List(address="/changes/", made_by=proposed, search="q"),
    "classes": List(address="/namespace-classes/", made_by=classes, search="q"),
    "namespaces of a class": List(address="/namespace-classes/every/", made_by=members, search="q"),
    "kept tests": List(address="/tests/", made_by=kept_tests, search="q"),
    "replays": List(address="/replays/", made_by=replays, search="q"),
    "people": List(address="/people/", made_by=persons, search="q"),
    "roles": List(address="/people/roles/", made_by=bindings, search="q"),
    "tokens": List(address="/people/tokens/", made_by=tokens, search="q", picks='class="pick"'),
    "sign-ins": List(address="/people/sign-ins/", made_by=sign_ins, search="q"),
    "service accounts": List(address="/people/service-accounts/", made_by=accounts, search="q"),
    "holds": List(address="/decisions/holds/", made_by=holds, search="q"),
    "history": List(address="/clusters/-/changes/", made_by=history, search="words", by_time=True),
    "decisions": List(address="/decisions/", made_by=decisions, search="q", by_time=True),
}
SORTED: Final = {name: each for name, each in LISTS.items() if not each.by_time}

NO_ROWS: Final = {"changes/sets/diff.html"}
"""Cards and no rows; their pages are tested beside the page."""
PAST: Final = "past/"
"""Pages of the past are read-only and in one order; they are tested beside their views."""


@pytest.fixture
def admin(client: Client) -> Client:
    client.force_login(get_user_model().objects.create_superuser("root"))
    return client


def page_of(client: Client, address: str, query: str = "", **fields: str) -> str:
    response: Any = client.get(f"{address}{unescape(query)}", fields or None, follow=True)
    assert response.status_code == 200
    return str(response.content.decode())


def names_in(page: str) -> list[str]:
    rows = _ROWS.search(page)
    return list(dict.fromkeys(_NAME.findall(_TAG.sub(" ", rows[0])))) if rows else []


@pytest.mark.sampled
@pytest.mark.parametrize("each", LISTS.values(), ids=LISTS.keys())
def test_all_pages_together_have_each_row_once(admin: Client, each: List) -> None:
    each.made_by()
    page = page_of(admin, each.address)
    found = names_in(page)
    assert 0 < len(found) < len(NAMES)
    while following := _NEXT.search(page):
        page = page_of(admin, each.address, following[1])
        found += names_in(page)
    assert sorted(found) == NAMES


@pytest.mark.sampled
@pytest.mark.parametrize("each", LISTS.values(), ids=LISTS.keys())
def test_a_search_finds_the_one_row(admin: Client, each: List) -> None:
    each.made_by()
    page = page_of(admin, each.address, **{each.search: "item-57"})
    assert names_in(page) == ["item-57"]


@pytest.mark.sampled
@pytest.mark.parametrize("each", SORTED.values(), ids=SORTED.keys())
def test_a_page_has_as_many_rows_as_were_asked_for_last(admin: Client, each: List) -> None:
    each.made_by()
    assert len(names_in(page_of(admin, each.address, rows="25"))) == 25
    assert len(names_in(page_of(admin, each.address))) == 25
    assert names_in(page_of(admin, each.address, rows="100", page="1")) == names_in(
        page_of(admin, each.address, rows="7")
    )
    assert len(names_in(page_of(admin, each.address))) == len(NAMES)


def test_each_page_with_numbered_pages_is_tested_here(admin: Client) -> None:
    known = set()
    for each in LISTS.values():
        with transaction.atomic():
            each.made_by()
            response: Any = admin.get(each.address)
            known |= {template.name for template in response.templates}
            transaction.set_rollback(True)
    paged = {
        str(path.relative_to(TEMPLATES))
        for path in TEMPLATES.rglob("*.html")
        if "parts/_pager.html" in path.read_text() and PAST not in str(path)
    }
    assert paged - NO_ROWS <= known


@pytest.mark.sampled
@pytest.mark.parametrize("each", SORTED.values(), ids=SORTED.keys())
def test_rows_are_sorted_both_ways(admin: Client, each: List) -> None:
    each.made_by()
    orders = []
    for query in _SORTS.findall(page_of(admin, each.address)):
        page = page_of(admin, each.address, query)
        orders.append(names_in(page)[0])
        orders += [
            names_in(page_of(admin, each.address, turned))[0] for turned in _SORTS.findall(page)
        ]
    assert {NAMES[0], NAMES[-1]} <= set(orders)


ACTED_ON: Final = {name: each for name, each in LISTS.items() if each.picks}


@pytest.mark.sampled
@pytest.mark.parametrize("each", ACTED_ON.values(), ids=ACTED_ON.keys())
def test_rows_are_picked_for_an_action(admin: Client, each: List) -> None:
    each.made_by()
    page = page_of(admin, each.address)
    assert page.count(each.picks) == len(names_in(page))
