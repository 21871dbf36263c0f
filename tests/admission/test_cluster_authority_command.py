"""The command that switches who enforces: it shows first, by the decisions on record."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING, Any

import pytest
from django.core.management import CommandError, call_command

from policies import services
from portal.authority_switch import preview
from tests.reviews import new_pod, quota, review

if TYPE_CHECKING:
    from collections.abc import Callable

    from policies.models import Cluster

pytestmark = pytest.mark.django_db


@pytest.fixture
def refused(cluster: Cluster, apply: Callable[..., None], ask: Callable[..., Any]) -> Cluster:
    """A cluster whose second pod the portal has refused by a quota."""
    apply(quota())
    for name in "ab":
        ask(review(new_pod(name)))
    return cluster


def output(*words: str) -> str:
    out = StringIO()
    call_command("cluster_authority", "demo", *words, stdout=out)
    return out.getvalue()


def make_native(cluster: Cluster) -> None:
    native = [("ResourceQuota", "ns", "pods")]
    services.note_native(cluster=cluster, native=native, user="sync")


def test_command_shows_and_changes_nothing(refused: Cluster) -> None:
    make_native(refused)
    shown = output("native")
    assert "1 of the 2 newest decisions" in shown
    assert "ns/b: exceeded quota" in shown
    refused.refresh_from_db()
    assert refused.authority == "portal"


def test_command_switches_with_yes_and_a_reason(refused: Cluster) -> None:
    assert "enforces from now on" in output("native", "--yes", "--reason", "plugins are on")
    refused.refresh_from_db()
    assert refused.authority == "native"
    assert "enforces already" in output("native")


def test_command_wants_to_know_why(refused: Cluster) -> None:
    with pytest.raises(CommandError) as end:
        output("native", "--yes", "--reason", " ")
    refused.refresh_from_db()
    assert (end.value.returncode, refused.authority) == (2, "portal")


def test_command_counts_by_namespace_over_the_given_days(refused: Cluster) -> None:
    make_native(refused)
    shown = output("native", "--days", "30")
    assert "1 of the 2 newest decisions of 30 days" in shown
    assert "    1 in ns\n" in shown


def test_command_reports_an_empty_record(cluster: Cluster) -> None:
    assert cluster.name == "demo"
    assert "no decision of the last 7 days is on record" in output("native")


def test_namespace_that_is_not_native_yet_is_named_and_changes_nothing(refused: Cluster) -> None:
    assert preview(refused, "native").let_through == 0
    assert "ns stays the portal's: not in the cluster yet: ResourceQuota pods" in output("native")


def test_warnings_would_be_refusals_by_the_portal(
    refused: Cluster, ask: Callable[..., Any]
) -> None:
    make_native(refused)
    services.set_authority(cluster=refused, authority="native", user="root")
    ask(review(new_pod("c")))
    found = preview(refused, "portal")
    assert (found.refused, found.examples[0].target) == (1, "ns/c")
