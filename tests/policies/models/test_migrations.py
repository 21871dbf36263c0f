"""Migrations keep what a table's rebuild would drop."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.core.management import call_command
from django.db import DatabaseError, connection, transaction
from django.db.migrations.exceptions import IrreversibleError
from django.db.migrations.loader import MigrationLoader

from admission.models import AuditEvent, decision_id
from admission.record import owners, write
from policies.models import ApiToken
from tests import factories, people
from tests.api_tokens import call, secret_of

if TYPE_CHECKING:
    from collections.abc import Iterator

BEFORE_TOKENS = "0004"
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.no_cover]


@pytest.fixture
def _all_again() -> Iterator[None]:
    yield
    call_command("migrate", verbosity=0)


@pytest.mark.usefixtures("_all_again")
@pytest.mark.parametrize("target", ["0003", "0002"])
def test_revisions_stay_append_only_on_the_way_back_and_forth(target: str) -> None:
    factories.cluster()
    for names in (["policies", target], ["policies"]):
        call_command("migrate", *names, verbosity=0)
        with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
            connection.cursor().execute("UPDATE policies_policyrevision SET reason = 'x'")


BEFORE_DOCUMENTS = ("admission", "0007_hits_of_tallies")
DECISION = {
    "duration_us": 1,
    "cluster": "prod",
    "request_uid": "u",
    "verdict": "denied",
    "code": 403,
}


@pytest.mark.usefixtures("_all_again")
def test_decisions_from_before_documents_are_read_and_stay_append_only() -> None:
    call_command("migrate", *BEFORE_DOCUMENTS, verbosity=0)
    before = MigrationLoader(connection).project_state(BEFORE_DOCUMENTS).apps
    decision = write.new_decision_id()
    before.get_model("admission", "AuditEvent").objects.bulk_create(
        [
            before.get_model("admission", "AuditEvent")(
                id=decision,
                created=decision_id.moment(decision),
                request={"object": {"metadata": {"generateName": "web-"}}},
                groups=["g"],
                **DECISION,
            )
        ]
    )
    call_command("migrate", "admission", verbosity=0)
    event = AuditEvent.objects.get()
    assert (event.groups, event.trace, owners.of_decision(event).name) == (["g"], [], "web")
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        connection.cursor().execute("UPDATE admission_auditevent SET code = 200")


@pytest.mark.usefixtures("_all_again")
def test_there_is_no_way_back_from_a_document() -> None:
    AuditEvent(id=write.new_decision_id(), groups=["g"], **DECISION).save()
    with pytest.raises(IrreversibleError):
        call_command("migrate", *BEFORE_DOCUMENTS, verbosity=0)
    assert AuditEvent.objects.get().groups == ["g"]


@pytest.fixture
def _table_of_knox() -> Iterator[None]:
    """The library's own table, as installations from before have it."""
    columns = "digest varchar(128) PRIMARY KEY, token_key varchar(25), user_id integer"
    times = "timestamp with time zone" if connection.vendor == "postgresql" else "datetime"
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE knox_authtoken ({columns}, created {times}, expiry {times})")
    yield
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE knox_authtoken")


@pytest.mark.usefixtures("_all_again", "_table_of_knox")
def test_tokens_of_knox_stay_valid_with_all_their_rights_and_go_back() -> None:
    factories.namespace()
    secret = secret_of(people.person(role="editor"))
    narrow = secret_of(people.person("bob", "editor"), cluster="prod")
    made = ApiToken.objects.get(user__username="ada").created
    call_command("migrate", "policies", BEFORE_TOKENS, verbosity=0)
    assert tokens_of_knox() == 1, "a narrow token would be worth more there"
    call_command("migrate", "policies", verbosity=0)
    assert tokens_of_knox() == 0
    token = ApiToken.objects.get()
    assert (token.access, token.scope, token.created) == ("write", "every cluster", made)
    assert token.name == f"{secret[:8]}…"
    assert call(secret, "post", "limitranges/?dryRun=All", {}).status_code != 403
    assert call(secret, "get", "namespaces/").json()["count"] == 1
    assert call(narrow, "get", "namespaces/").status_code == 401


def tokens_of_knox() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM knox_authtoken")
        return int(cursor.fetchone()[0])
