"""Recount: differences are named, repaired on demand, and reported now and then."""

from __future__ import annotations

import json
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from policies import tasks
from policies.db.clock import read_clock
from policies.ledger import entries
from policies.ledger.recount import recount
from policies.models import Charge, LedgerEntry, QuotaUsage
from tests import builders, charges, factories, people

pytestmark = pytest.mark.django_db
FOUND = {"cluster": "prod", "namespace": "team", "quota": "rq", "resource": "pods"}


@pytest.fixture(autouse=True)
def _one_pod_is_reserved(db: None) -> None:
    factories.resource_quota({"pods": "5", "requests.cpu": "2"})
    container = builders.container(requests={"cpu": "1"})
    pod = builders.pod(container, uid="u1", namespace="team")
    assert charges.admit(builders.request(pod, namespace="team")) == [True]


def drift(**used: str) -> None:
    QuotaUsage.objects.update(used=used)


def run(*words: str) -> tuple[int, str]:
    """Run the command; its exit code, and what it printed."""
    out = StringIO()
    try:
        call_command("quota_recount", *words, stdout=out)
    except CommandError as error:
        return error.returncode, out.getvalue()
    return 0, out.getvalue()


def test_no_difference() -> None:
    assert run() == (0, "nothing differs\n")
    assert json.loads(run("-o", "json")[1]) == {"differences": [], "repaired": False}


def test_a_difference_is_named_and_left() -> None:
    drift(**{"pods": "4", "requests.cpu": "1000m"})
    code, text = run("--cluster", "prod", "-o", "json")
    [found] = json.loads(text)["differences"]
    [entry] = found.pop("entries")
    assert (entry["action"], entry["object_uid"], entry["after"]["pods"]) == ("charge", "u1", "1")
    assert (code, found) == (1, {**FOUND, "used": "4", "charged": "1", "is_explained": False})
    assert run("-n", "team", "--cluster", "prod")[0] == 1
    assert QuotaUsage.objects.get().used["pods"] == "4"


def test_a_difference_names_the_entries_that_used_lacks() -> None:
    drift(**{"pods": "0", "requests.cpu": "1"})
    entry = LedgerEntry.objects.get()
    created = entry.created.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    assert run()[1].splitlines() == [
        "prod/team rq pods: used 0, charged 1; used lacks these entries:",
        f"  {created} charge pods p: nothing -> pods=1 requests.cpu=1 (admission)",
    ]


def test_a_difference_without_entries_has_none() -> None:
    entries.forget(read_clock() + timedelta(days=1))
    drift(**{"pods": "0", "requests.cpu": "1"})
    assert run()[1] == "prod/team rq pods: used 0, charged 1\n"


def test_a_repair_names_who_made_it() -> None:
    drift(**{"pods": "0", "requests.cpu": "1"})
    people.person("ada")
    assert run("--repair", "--user", "nobody")[0] == 2
    assert run("--repair", "--user", "ada")[0] == 0
    assert LedgerEntry.objects.get(action="recount").reference == "ada"


def test_reservations_survive_a_repair() -> None:
    drift(**{"pods": "0", "requests.cpu": "0"})
    assert run("--repair")[0] == 0
    assert QuotaUsage.objects.get().used == {"pods": "1", "requests.cpu": "1"}
    assert Charge.objects.get().state == "reserved"
    assert run() == (0, "nothing differs\n")


@pytest.mark.parametrize("used", [{}, {"pods": "1", "requests.cpu": "1", "services": "2"}])
def test_names_that_are_missing_or_too_many_differ(used: dict[str, str]) -> None:
    drift(**used)
    assert run()[0] == 1
    assert run("--repair")[0] == 0
    assert QuotaUsage.objects.get().used == {"pods": "1", "requests.cpu": "1"}


def test_one_namespace_or_cluster_is_enough() -> None:
    factories.namespace("other")
    factories.namespace("elsewhere", in_cluster="other")
    drift(pods="4")
    assert run("--cluster", "prod", "-n", "other")[0] == 0
    assert run("--cluster", "other")[0] == 0
    assert run()[0] == 1


@pytest.mark.parametrize(
    "words",
    [("--cluster", "nope"), ("--cluster", "prod", "-n", "nope"), ("-n", "team"), ("-o", "yaml")],
)
def test_wrong_usage(words: tuple[str, ...]) -> None:
    assert run(*words)[0] in {1, 2}
    with pytest.raises(CommandError) as caught:
        call_command("quota_recount", *words)
    assert caught.value.returncode == 2 or words[0] == "-o"


def test_the_task_reports_and_repairs_nothing(caplog: Any) -> None:
    drift(pods="4")
    tasks.report_differences()
    assert "used='4'" in caplog.text
    assert len(recount("prod")) == 2
