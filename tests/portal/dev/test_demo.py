"""The demo clusters, the first admin and the credentials that ``make run`` creates."""

from __future__ import annotations

import re
from collections import Counter
from datetime import timedelta
from io import StringIO
from typing import TYPE_CHECKING

import pytest
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command
from django.utils import timezone

from admission.effect.effect import effect_of
from admission.effect.writes import writes_of
from admission.models import AuditEvent, Tally
from admission.models.tally import STEP, added, columns_of, counted
from admission.record import owners
from admission.record.demand import demand_by_quota, waiting_owners
from admission.record.policy_hits import hits_since
from policies import services, snapshot
from policies.ledger.recount import recount
from policies.models import ChangeSet, Cluster, LimitRange, QuotaUsage, WebhookCredential
from policies.snapshot import Authentication
from portal.auth.accounts import ensure_first_admin
from portal.dev.demo import CLUSTER, begin_demo, demo_credential, seed_demo

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_django import SettingsWrapper

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def folder(settings: SettingsWrapper, tmp_path: Path) -> Path:
    settings.GATEHOUSE_VAR = tmp_path
    return tmp_path


def run(*words: str) -> str:
    output = StringIO()
    call_command(*words, stdout=output)
    return output.getvalue().strip()


def test_demo_is_made_once_and_then_left_alone() -> None:
    assert sorted(seed_demo()) == ["demo", "demo-connected", "demo-priority"]
    limits = LimitRange.objects.filter(namespace__cluster__name="demo", namespace__name="demo")
    services.delete_policy(policy=limits.get(), user="ada")
    assert run("demo") == "nothing to do: demo is there"
    assert not limits.exists()


@pytest.mark.servers
def test_demo_begins_with_a_month_that_adds_up() -> None:
    begin_demo()
    rows = AuditEvent.objects.all()
    assert rows.count() > 5000
    assert added(Tally.objects.values()) == added(counted(rows).values())
    assert {row.split()[0] for row in rows.denied().values_list("reasons", flat=True)} >= {
        "ExceededQuota",
        "MaxConstraint",
        "RejectedByRule",
        "UncoveredScope",
    }
    full = QuotaUsage.objects.get(namespace="payments", quota__name="critical")
    assert full.used["pods"] == "20"
    assert recount(CLUSTER) == []
    stuck = waiting_owners(rows)[0]
    assert (stuck.namespace, stuck.name) == ("payments", "payments-api")
    assert [*demand_by_quota([stuck])] == [(CLUSTER, "payments", "compute")]
    metadata = rows.get(id=stuck.decision).request["object"]["metadata"]
    assert owners.recorded(metadata) == owners.Owner("Deployment", "payments-api")
    for tally in Tally.objects.exclude(hits={})[:50]:
        columns = columns_of(rows.between(tally.start, tally.start + STEP))[tally.cluster]
        assert (tally.namespaces, tally.hits) == (columns["namespaces"], columns["hits"])
    hits = hits_since(timezone.now() - timedelta(days=1)).by_policy
    audited = hits[CLUSTER, "MetadataPolicy", "web", "cost-center"]
    assert audited.would_deny > audited.denied == 0


@pytest.mark.servers
def test_demo_has_published_changes_with_an_effect_and_one_that_is_proposed() -> None:
    begin_demo()
    by_state = Counter(ChangeSet.objects.values_list("state", flat=True))
    assert by_state == {"done": 4, "draft": 1, "stopped": 1}
    lowered = ChangeSet.objects.get(title="Lower compute of payments")
    found = effect_of(
        writes_of(lowered.items.all()), decisions=AuditEvent.objects.all(), now=timezone.now()
    )
    assert found is not None
    assert found.after.denied > found.before.denied
    assert "payments-api" in {each.name for each in found.owners[:3]}


def test_demo_has_the_policies_of_both_stories() -> None:
    seed_demo()
    one = snapshot.load("demo", "kube-system")
    two = snapshot.load("demo-priority", "covered")
    assert [str(s) for e in one.limited_resources for s in e.match_scopes] == [
        "PriorityClass In [cluster-services]"
    ]
    assert [str(s) for e in two.limited_resources for s in e.match_scopes] == [
        "PriorityClass Exists []"
    ]
    assert [q.name for q in (*one.resource_quotas, *two.resource_quotas)] == [
        "pods-cluster-services",
        "pods-with-priority",
    ]


def test_demo_credential_is_kept_privately_and_replaced_when_revoked(folder: Path) -> None:
    seed_demo()
    first = demo_credential()
    assert run("demo", "--credential") == first
    assert (folder / "demo-credential").stat().st_mode & 0o777 == 0o600
    services.revoke_webhook_credential(credential=WebhookCredential.objects.get(), user="ada")
    second = demo_credential()
    assert second != first
    assert snapshot.authenticate(CLUSTER, second) == Authentication.OK


def test_first_admin_gets_a_password_once() -> None:
    password = ensure_first_admin()
    user = get_user_model().objects.get()
    assert (user.username, user.check_password(password or "")) == ("admin", True)
    assert ensure_first_admin() is None


def test_first_admin_of_the_settings_keeps_its_password(settings: SettingsWrapper) -> None:
    settings.GATEHOUSE_ADMIN_USER, settings.GATEHOUSE_ADMIN_PASSWORD = "ada", "long-enough-to-keep"
    assert "password" not in run("bootstrap", "--verbosity", "0")
    assert get_user_model().objects.get(username="ada").check_password("long-enough-to-keep")


def test_bootstrap_prints_what_it_generated() -> None:
    assert run("bootstrap", "--verbosity", "0").startswith("admin: admin\npassword: ")


def test_credential_is_issued_listed_and_revoked() -> None:
    secret = run("webhook_credential", "prod", "--create", "--issue", "first", "--days", "7")
    assert snapshot.authenticate("prod", secret) == Authentication.OK
    number = WebhookCredential.objects.get().pk
    assert run("webhook_credential", "prod").split("\t")[1] == "valid"
    assert run("webhook_credential", "prod", "--revoke", str(number)) == f"revoked: {number}"
    assert run("webhook_credential", "prod").split("\t")[1] == "revoked"
    assert snapshot.authenticate("prod", secret) == Authentication.UNKNOWN


def test_credential_of_another_cluster_cannot_be_revoked_here() -> None:
    run("webhook_credential", "prod", "--create", "--issue", "first")
    run("webhook_credential", "test", "--create")
    with pytest.raises(CommandError, match="has no credential"):
        run("webhook_credential", "test", "--revoke", str(WebhookCredential.objects.get().pk))
    assert Cluster.objects.count() == 2


def test_new_cluster_is_printed_with_its_webhook_address() -> None:
    made = run("webhook_credential", "prod", "--create")
    assert "created: cluster prod" in made
    assert "/admission/prod/validate" in made
    assert "--issue" in made
    assert "created" not in run("webhook_credential", "prod", "--create")


def test_an_issued_secret_stands_alone_in_the_output(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("webhook_credential", "prod", "--create", "--issue", "first")
    out, err = capsys.readouterr()
    assert re.fullmatch(r"[\w-]{40,}\n", out)
    assert "created: cluster prod" in err
    assert "/admission/prod/mutate" in err
