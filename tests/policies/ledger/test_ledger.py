"""The ledger: what an object costs is charged once, and given back when it is gone."""

from __future__ import annotations

from typing import Any

import pytest

from engine.quantity import Quantity
from engine.request import AdmissionRequest, Operation
from engine.wire import loads
from policies import ledger, services
from policies.ledger.recount import recount
from policies.ledger.release import confirm, release
from policies.models import Charge, QuotaUsage
from tests import builders, charges, factories

pytestmark = pytest.mark.django_db


def pod(cpu: str = "1", *, uid: str = "u1", **spec: Any) -> dict[str, Any]:
    container = builders.container(requests={"cpu": cpu})
    made = builders.pod(container, uid=uid, resourceVersion="1", namespace="team")
    made["spec"].update(spec)
    return made


def create(cpu: str = "1", *, uid: str = "u1", **spec: Any) -> AdmissionRequest:
    return builders.request(pod(cpu, uid=uid, **spec), namespace="team", uid="round-trip")


def resize(old: str, new: str, *, uid: str = "u1") -> AdmissionRequest:
    return builders.request(
        pod(new, uid=uid),
        namespace="team",
        operation=Operation.UPDATE,
        old_object=pod(old, uid=uid),
        sub_resource="resize",
    )


def admit(request: AdmissionRequest) -> bool:
    [allowed] = charges.admit(request)
    return allowed


def used(name: str = "rq") -> dict[str, str]:
    return QuotaUsage.objects.get(quota__name=name).used


@pytest.fixture(autouse=True)
def _ledger_is_even() -> Any:
    yield
    assert recount("prod") == []


def test_a_create_is_charged() -> None:
    factories.resource_quota({"pods": "2", "requests.cpu": "3"})
    assert admit(create("1500m"))
    assert used() == {"pods": "1", "requests.cpu": "1500m"}
    charge = Charge.objects.get()
    assert (charge.resource, charge.object_uid, charge.state) == ("pods", "u1", "reserved")
    assert str(charge) == "pods p: reserved"


def test_a_replay_is_charged_once_even_at_the_limit() -> None:
    factories.resource_quota({"pods": "1"})
    assert [admit(create()) for _ in range(3)] == [True, True, True]
    assert not admit(create(uid="u2"))
    assert used() == {"pods": "1"}


def test_an_object_without_uid_goes_by_the_request() -> None:
    factories.cluster()
    assert ledger.object_key(builders.request(None, uid="r")) == ("pods", "r")
    assert ledger.object_key(builders.request(builders.pod(), uid="r")) == ("pods", "r")
    numbered = loads('{"metadata": {"uid": 0}}')
    assert ledger.object_key(builders.request(numbered, uid="r")) == ("pods", "r"), (
        "no text, no uid"
    )


def test_growth_is_charged_once() -> None:
    factories.resource_quota({"requests.cpu": "3"})
    assert admit(create("1"))
    assert admit(resize("1", "3"))
    assert admit(resize("1", "3")), "a replay"
    assert used() == {"requests.cpu": "3"}
    assert not admit(resize("3", "4"))


def test_an_update_never_lowers_what_is_used() -> None:
    factories.resource_quota({"requests.cpu": "3"})
    admit(create("3"))
    assert admit(resize("3", "1"))
    assert used() == {"requests.cpu": "3"}
    assert admit(resize("1", "3")), "it still holds three"


def test_growth_of_an_object_of_the_opening_balance() -> None:
    factories.resource_quota({"requests.cpu": "3"}, used={"requests.cpu": "1"})
    assert [admit(resize("1", "2")), admit(resize("1", "2"))] == [True, True]
    assert used() == {"requests.cpu": "2"}
    release("prod", resource="pods", uid="u1")
    assert used() == {"requests.cpu": "0"}


def test_growth_of_an_object_that_nobody_counted() -> None:
    factories.resource_quota({"requests.cpu": "3"})
    assert [admit(resize("1", "2")), admit(resize("1", "2"))] == [True, True]
    assert used() == {"requests.cpu": "2"}


def test_an_update_into_a_quota_is_charged_whole_and_once() -> None:
    factories.resource_quota({"pods": "1"}, scopes=["Terminating"])
    assert admit(create())
    assert used() == {"pods": "0"}
    entering = builders.request(
        pod(activeDeadlineSeconds=5),
        namespace="team",
        operation=Operation.UPDATE,
        old_object=pod(),
    )
    assert [admit(entering), admit(entering)] == [True, True]
    assert used() == {"pods": "1"}


def test_several_quotas_are_charged_each() -> None:
    factories.resource_quota({"pods": "5"}, name="a")
    factories.resource_quota({"pods": "5", "requests.cpu": "5"}, name="b")
    admit(create("2"))
    assert (used("a"), used("b")) == ({"pods": "1"}, {"pods": "1", "requests.cpu": "2"})


def test_release_gives_back_and_only_once() -> None:
    factories.resource_quota({"pods": "1"})
    admit(create())
    assert release("prod", resource="pods", uid="u1") == 1
    assert release("prod", resource="pods", uid="u1") == 0
    assert used() == {"pods": "0"}
    assert Charge.objects.get().amounts == {"pods": "1"}


def test_a_released_object_can_be_charged_again() -> None:
    factories.resource_quota({"pods": "1"})
    admit(create())
    release("prod", resource="pods", uid="u1")
    assert admit(create())
    assert (used(), Charge.objects.get().state) == ({"pods": "1"}, "reserved")


def test_confirm_keeps_or_corrects_the_amounts() -> None:
    quota = factories.resource_quota({"pods": "5", "requests.cpu": "5"})
    admit(create("3"))
    assert confirm("prod", resource="pods", uid="u1") == 1
    seen = {quota.uid: {"pods": Quantity.parse("1"), "requests.cpu": Quantity.parse("1")}}
    confirm("prod", resource="pods", uid="u1", amounts=seen)
    assert used() == {"pods": "1", "requests.cpu": "1"}
    admit(resize("1", "2"))
    assert Charge.objects.get().state == "confirmed"


def test_charges_of_a_deleted_quota_are_released_all_the_same() -> None:
    quota = factories.resource_quota({"pods": "5"})
    admit(create())
    deleted = services.delete_policy(policy=quota, user="x").revision
    assert release("prod", resource="pods", uid="u1") == 1
    assert deleted is not None
    services.restore_revision(revision=deleted, user="x")
    assert used() == {"pods": "0"}


def test_opening_balance_counts_and_is_read_once() -> None:
    factories.resource_quota({"pods": "5"}, used={"pods": "3"})
    factories.resource_quota({"pods": "6"}, used={"pods": "1"})
    assert used() == {"pods": "3"}


def test_a_changed_limit_keeps_what_is_used() -> None:
    factories.resource_quota({"pods": "5", "requests.cpu": "5"})
    admit(create("2"))
    factories.resource_quota({"pods": "1", "limits.nvidia.com/gpu": "1"})
    assert used() == {"pods": "1"}
    factories.resource_quota({"requests.cpu": "1", "pods": "1"})
    assert used() == {"pods": "1", "requests.cpu": "2"}


def test_untracked_names_are_never_charged() -> None:
    factories.resource_quota({"pods": "5", "limits.nvidia.com/gpu": "1"})
    assert admit(create())
    assert used() == {"pods": "1"}


def test_recount_reports_and_repairs() -> None:
    factories.resource_quota({"pods": "5"}, used={"pods": "3"})
    QuotaUsage.objects.update(used={"pods": "4"})
    [found] = recount("prod", repair=True)
    assert (found.quota, found.resource, found.used, found.charged) == ("rq", "pods", "4", "3")
    assert used() == {"pods": "3"}
