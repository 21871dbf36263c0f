"""A new version of a class of thousands of namespaces is one write of few statements."""

from __future__ import annotations

import time
from typing import Final

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from policies import services, snapshot
from policies.models import PolicyRevision
from tests import factories
from tests.namespace_classes import limits, quota, saved_class

MANY: Final = 5_000
MOST_SECONDS: Final = 10


def known(number: int) -> None:
    manifests = [{"kind": "Namespace", "metadata": {"name": f"n{each}"}} for each in range(number)]
    services.create_many(cluster=factories.cluster(), manifests=manifests, user="cluster:prod")


def statements_of(number: int) -> int:
    """The statements of a version that changes two policies of so many namespaces."""
    known(number)
    saved_class(policies=[limits("100m"), quota(pods="10")])
    with CaptureQueriesContext(connection) as queries:
        saved_class(policies=[limits("200m"), quota(pods="12")])
    return len(queries)


@pytest.mark.django_db
def test_statements_do_not_grow_with_the_number_of_namespaces() -> None:
    few = statements_of(10)
    # Databases take so many values in one statement: a few more are needed for more rows.
    assert statements_of(60) - few < few / 4


@pytest.mark.bench
@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_5000_namespaces_have_a_new_version_in_force_in_time() -> None:
    known(MANY)
    saved_class(policies=[limits("100m"), quota(pods="10")])
    snapshot.refresh()
    began = time.perf_counter()
    saved_class(policies=[limits("200m"), quota(pods="12")])
    policies = snapshot.refresh().clusters["prod"].policy_set(f"n{MANY - 1}")
    seconds = time.perf_counter() - began
    assert str(policies.limit_ranges[0].items[0].default["cpu"]) == "200m"
    changed = PolicyRevision.objects.filter(manager="class:team", action="update").count()
    assert changed == 2 * MANY
    print(f"{MANY} namespaces, {changed} policies: {seconds:.1f} s")  # noqa: T201 - the figure
    assert seconds < MOST_SECONDS
