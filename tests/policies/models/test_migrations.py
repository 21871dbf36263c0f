"""Migrations keep what a table's rebuild would drop."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.core.management import call_command
from django.db import DatabaseError, connection, transaction

from tests import factories

if TYPE_CHECKING:
    from collections.abc import Iterator

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
