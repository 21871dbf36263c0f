"""Connections: sealed, tested, moved nowhere; and that the secret is found nowhere else."""

from __future__ import annotations

import io
import json
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.core.management import CommandError, call_command
from django.db import connection as database

from engine.policy import Authority
from policies import services
from policies.models import Cluster, PolicyRevision
from sync.connect import connections, probe, seal_keys, sealed_box
from sync.connect import join as connect_join
from sync.connect.kubeconfig import parse
from sync.connect.permissions import GRANTS
from sync.errors import (
    ForbiddenError,
    UnauthorizedError,
    UnreachableError,
    UntrustedError,
)
from sync.models import ClusterAlert, ClusterConnection
from tests import factories
from tests.sync.fakes import FakeClient
from tests.sync.kubeconfigs import SERVER, TOKEN, pair, text

if TYPE_CHECKING:
    from django.test import Client as Browser
    from pytest_django.fixtures import SettingsWrapper

pytestmark = pytest.mark.django_db
CERTIFIED = {"client-certificate-data": pair()[0], "client-key-data": pair()[1]}


@pytest.fixture(autouse=True)
def _keys(settings: SettingsWrapper, tmp_path: Path) -> None:
    settings.GATEHOUSE_SEAL_PUBLIC_KEYS_FILE = tmp_path / "seal" / "public.pem"
    settings.GATEHOUSE_SEAL_PRIVATE_KEYS_FILE = tmp_path / "seal" / "private.pem"
    seal_keys.ensure_keys()


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeClient:
    client = FakeClient()
    monkeypatch.setattr(connect_join, "client_of", client)
    return client


def connected(name: str = "prod", user: dict[str, Any] | None = None) -> ClusterConnection:
    return connections.connect(factories.cluster(name), parse(text(user)), "tester")


def join(name: str = "prod", **options: Any) -> connect_join.Joined:
    asked = connect_join.JoinRequest(name=name, text=text(), **options)
    return connect_join.join(asked, user="tester")


@pytest.mark.parametrize("user", [None, CERTIFIED], ids=["token", "certificate"])
def test_worker_reads_what_was_connected(user: dict[str, Any] | None) -> None:
    connected(user=user)
    stored = ClusterConnection.objects.get()
    assert connections.credentials_of(stored) == parse(text(user))


def test_expiry_of_a_client_certificate_is_known() -> None:
    assert connected(user=CERTIFIED).credential_expires is not None
    assert connected("other").credential_expires is None


def test_a_dry_run_checks_everything_and_stores_nothing(fake: FakeClient) -> None:
    joined = join(is_dry_run=True, authority="portal")
    assert (joined.is_new, joined.findings.state, joined.connection.state) == (True, "ok", "ok")
    assert not Cluster.objects.exists()
    assert not PolicyRevision.objects.exists()
    with pytest.raises(ValidationError):
        join("No_Name", is_dry_run=True)


def test_another_generation_than_the_one_that_was_read_is_not_replaced(fake: FakeClient) -> None:
    join(generation=0)
    join(generation=1)
    for read in (0, 1):
        with pytest.raises(ValidationError) as refusal:
            join(generation=read)
        assert refusal.value.code == "changed"
    assert ClusterConnection.objects.get().generation == 2


def test_a_test_stores_nothing(fake: FakeClient) -> None:
    connected()
    fake.error = UnauthorizedError("no", code=401)
    request = connect_join.JoinRequest(name="prod", text=text())
    assert connect_join.try_out(request).state == "unauthorized"
    assert ClusterConnection.objects.get().state == "new"
    assert not ClusterAlert.objects.exists()


def test_connecting_anew_replaces_and_counts() -> None:
    first = connected()
    second = connected(user=CERTIFIED)
    assert (second.pk, second.generation, second.method) == (first.pk, 2, "certificate")


def test_history_has_the_connection_without_its_secret() -> None:
    connected()
    revision = PolicyRevision.objects.get(kind="ClusterConnection")
    assert revision.after["spec"]["server"] == SERVER
    assert TOKEN not in json.dumps(revision.after)


MOVES = {
    "server": {"server": "https://evil.example.com"},
    "authority": {"authority_certificates": ""},
    "name": {"tls_server_name": "evil.example.com"},
    "method": {"method": "certificate"},
    "key": {"key_id": "0" * 16},
    "box": {"sealed": b"\x01" * 80},
}


@pytest.mark.parametrize("change", MOVES.values(), ids=MOVES.keys())
def test_changed_row_gives_no_credential_and_alarms(change: dict[str, Any]) -> None:
    connection = connected()
    ClusterConnection.objects.update(**change)
    with pytest.raises(UnauthorizedError) as caught:
        connections.open_client(connection.cluster)
    assert caught.value.reason == "SealedCredential"
    alert = ClusterAlert.objects.get(kind="sealed-credential", resolved=None)
    assert (alert.cluster, alert.severity) == (connection.cluster, "critical")


def test_swapped_credentials_open_in_neither_place() -> None:
    rows = [connected("a"), connected("b")]
    for row, other in zip(rows, reversed(rows), strict=True):
        ClusterConnection.objects.filter(pk=row.pk).update(sealed=other.sealed)
    for row in ClusterConnection.objects.all():
        with pytest.raises(sealed_box.SealingError):
            connections.credentials_of(row)
    assert ClusterAlert.objects.filter(kind="sealed-credential").count() == 2


def test_connecting_anew_ends_the_alarm() -> None:
    connection = connected()
    ClusterConnection.objects.update(sealed=b"x")
    with pytest.raises(UnauthorizedError):
        connections.open_client(connection.cluster)
    connected()
    assert not ClusterAlert.objects.filter(resolved=None).exists()


def test_cluster_without_connection_is_no_client() -> None:
    with pytest.raises(UnreachableError) as caught:
        connections.open_client(factories.cluster())
    assert caught.value.reason == "NotConnected"


def test_web_process_has_no_client(settings: SettingsWrapper) -> None:
    connection = connected()
    settings.GATEHOUSE_SEAL_PRIVATE_KEYS_FILE = Path("/dev/null")
    with pytest.raises(UnauthorizedError):
        connections.open_client(connection.cluster)
    assert not ClusterAlert.objects.exists()


def test_new_cluster_is_made_native_and_tested(fake: FakeClient) -> None:
    joined = join()
    assert joined.is_new
    assert joined.connection.cluster.authority == Authority.NATIVE
    stored = ClusterConnection.objects.get()
    assert (stored.state, stored.server_version, stored.cluster_uid) == (
        "ok",
        "v1.36.3",
        "cluster-1",
    )
    assert stored.missing_permissions == []
    assert stored.tested is not None
    assert stored.cluster.kubernetes_version == "1.36"


def test_version_of_another_cluster_is_not_noted(fake: FakeClient) -> None:
    join()
    services.set_kubernetes_version(cluster=factories.cluster(), version="1.37", user="x")
    fake.uid = "cluster-2"
    join(is_anyway=True)
    assert ClusterConnection.objects.get().cluster.kubernetes_version == "1.37"


def test_every_permission_is_checked(fake: FakeClient) -> None:
    join()
    asked = sum(len(grant.verbs) * max(1, len(grant.names)) for grant in GRANTS)
    assert len(set(fake.asked)) == len(fake.asked) == asked


def test_missing_permissions_are_shown(fake: FakeClient) -> None:
    fake.denied = ("services",)
    assert join().connection.missing_permissions == ["list, watch services"]
    assert ClusterConnection.objects.get().state == "ok"


def test_cluster_that_cannot_be_read_is_forbidden(fake: FakeClient) -> None:
    fake.denied = ("namespaces", "resourcequotas")
    assert join().findings.state == "forbidden"


ERRORS = {
    "unauthorized": UnauthorizedError("no"),
    "forbidden": ForbiddenError("no"),
    "untrusted": UntrustedError("no"),
    "unreachable": UnreachableError("no"),
}


@pytest.mark.parametrize(("state", "error"), ERRORS.items())
def test_trouble_becomes_a_state(state: str, error: Exception, fake: FakeClient) -> None:
    fake.error = error
    assert join().connection.state == state


def test_other_cluster_under_the_same_address_is_noticed(fake: FakeClient) -> None:
    connection = join().connection
    fake.uid = "cluster-2"
    assert probe.ProbeResult.to_json(probe.test(connection, fake))["state"] == "untrusted"
    assert ClusterAlert.objects.filter(kind="other-cluster", resolved=None).exists()
    assert join(is_other_cluster=True).connection.cluster_uid == "cluster-2"
    assert not ClusterAlert.objects.filter(kind="other-cluster", resolved=None).exists()


@pytest.mark.parametrize("skew", [-3600.0, 3600.0])
def test_clock_skew_is_reported(skew: float, fake: FakeClient) -> None:
    fake.skew = skew
    joined = join()
    assert [code for code, _ in joined.findings.problems] == ["clock-skew"]
    assert joined.connection.clock_skew == pytest.approx(skew, abs=2)
    assert joined.findings.is_usable


def test_what_works_is_not_replaced_by_what_does_not(fake: FakeClient) -> None:
    join()
    fake.error = UnreachableError("gone")
    with pytest.raises(connect_join.NotUsableError):
        join()
    assert ClusterConnection.objects.get().generation == 1
    assert join(is_anyway=True).connection.generation == 2


def test_findings_of_a_replaced_connection_are_dropped(fake: FakeClient) -> None:
    before = join().connection
    connected()
    probe.store(before, probe.ProbeResult(state="forbidden"))
    assert ClusterConnection.objects.get().state == "new"


def test_nothing_is_made_without_a_public_key(fake: FakeClient, settings: SettingsWrapper) -> None:
    settings.GATEHOUSE_SEAL_PUBLIC_KEYS_FILE = Path("/dev/null")
    with pytest.raises(sealed_box.SealingError):
        join()
    assert not Cluster.objects.exists()


def run(tmp_path: Path, content: str, *words: str) -> tuple[int, str]:
    file, out = tmp_path / "kubeconfig", io.StringIO()
    file.write_text(content)
    try:
        call_command("connect_cluster", "prod", "--kubeconfig", str(file), *words, stdout=out)
    except CommandError as error:
        return error.returncode, out.getvalue() + str(error)
    return 0, out.getvalue()


def test_command_connects(fake: FakeClient, tmp_path: Path) -> None:
    code, said = run(tmp_path, text(), "-o", "json")
    assert (code, json.loads(said)["serverVersion"]) == (0, "v1.36.3")
    steps = [step["command"].split()[2] for step in json.loads(said)["nextSteps"]]
    assert steps == ["cluster_enforcement", "sync", "cluster_ownership"]


def test_command_refuses_with_code_and_field(tmp_path: Path) -> None:
    code, said = run(tmp_path, text({"exec": {"command": "x"}}))
    assert code == 1
    assert "users[0].user.exec" in said
    assert "[exec]" in said


def test_command_says_what_is_not_usable_yet(fake: FakeClient, tmp_path: Path) -> None:
    fake.denied = ("limitranges",)
    code, said = run(tmp_path, text())
    assert (code, "missing permission" in said) == (1, True)


def test_command_wants_a_name_that_clusters_can_have(fake: FakeClient, tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(text())
    with pytest.raises(CommandError) as caught:
        call_command("connect_cluster", "No Name", "--kubeconfig", str(file))
    assert caught.value.returncode == 2


def test_command_ends_with_the_next_steps(fake: FakeClient, tmp_path: Path) -> None:
    fake.denied = ("services",)
    _, said = run(tmp_path, text())
    steps = said.partition("next steps:\n")[2].splitlines()
    assert [line.split(".")[0] for line in steps[::2]] == ["1", "2", "3"]
    assert "cluster_manifests prod" in steps[1]
    assert "sync prod --import --follow" in "".join(steps)


def everything_stored() -> str:
    with database.cursor() as cursor:
        tables = database.introspection.table_names(cursor)
        found = []
        for table in tables:
            cursor.execute(f'SELECT * FROM "{table}"')  # noqa: S608 - our own tables
            found += [
                repr([bytes(v) if isinstance(v, memoryview) else v for v in row])
                for row in cursor.fetchall()
            ]
    return "\n".join(found)


def dumped() -> str:
    out = io.StringIO()
    call_command("dumpdata", stdout=out)
    return out.getvalue()


def assert_unseen(*texts: str) -> None:
    """The canary is in none of them, and not in the database; but the worker can have it."""
    seen = [*texts, everything_stored(), dumped()]
    assert [text for text in seen if TOKEN in text] == []
    assert connections.credentials_of(ClusterConnection.objects.get()).token == TOKEN


def test_secret_is_in_no_table_log_dump_or_output(
    fake: FakeClient, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    _, said = run(tmp_path, text())
    said += run(tmp_path, text(server="https://169.254.169.254"))[1]
    said += run(tmp_path, text() + "}")[1]
    fake.error = UnauthorizedError("refused")
    said += run(tmp_path, text(), "--anyway")[1]
    assert_unseen(said, caplog.text, repr(fake.credentials))


def test_secret_is_on_no_page_and_in_no_traceback(
    fake: FakeClient, caplog: pytest.LogCaptureFixture, client: Browser
) -> None:
    caplog.set_level(logging.DEBUG)
    client.force_login(User.objects.create_superuser("root"))
    form, connect = {"name": "prod", "text": text(), "is_anyway": "on"}, "/clusters/-/connect/"
    changes = ({}, {"name": "No Name"}, {"context": "none"}, {"text": text() + "}"})
    pages = [client.post(connect, {**form, **change}, follow=True) for change in changes]
    pages += [client.get(page) for page in ("/clusters/", "/clusters/prod/", "/admin/", connect)]
    assert [page.status_code for page in pages] == [200, 422, 422, 422, 200, 200, 200, 200]
    fake.error, client.raise_request_exception = RuntimeError("a fault of ours"), False
    pages.append(client.post(connect, form))
    assert "a fault of ours" in caplog.text
    assert_unseen(caplog.text, *(page.content.decode() for page in pages))
