"""Replays over the API: requested with 202, carried out, read and cancelled by who may see them."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pytest

from admission import tasks
from admission.models import Replay
from admission.replay import work
from tests import people
from tests.admission.replay.conftest import BEGIN, PROPOSED
from tests.admission.replay.conftest import cluster as cluster  # noqa: PLC0414 - a fixture
from tests.admission.replay.conftest import decided as decided  # noqa: PLC0414 - a fixture
from tests.api_tokens import call, secret_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from policies.models import Cluster

pytestmark = pytest.mark.django_db
SINCE, UNTIL = (
    (BEGIN + dt.timedelta(days=days)).isoformat().replace("+00:00", "Z") for days in (-2, 2)
)
BODY = {"cluster": "demo", "manifests": [PROPOSED], "since": SINCE, "until": UNTIL}


def viewer(namespace: str = "", name: str = "ada", access: str = "read") -> str:
    user = people.nobody(name)
    people.bind(user, "viewer", cluster="demo", namespace=namespace)
    return secret_of(user, access)


def requested(secret: str, **changed: Any) -> Any:
    return call(secret, "post", "replays/", {**BODY, **changed})


def test_a_replay_is_requested_carried_out_and_read(decided: Callable[..., list[str]]) -> None:
    recorded = decided("250m", "1")
    secret = viewer("ns")
    answer = requested(secret)
    assert answer.status_code == 202, answer.content
    assert answer.json()["state"] == "queued"
    address = answer["Location"]
    assert address.endswith(f"/api/v1/replays/{answer.json()['uid']}/")
    tasks.carry_out_replay(answer.json()["uid"])
    found = call(secret, "get", address).json()
    assert (found["state"], found["done"], found["total"]) == ("done", 2, 2)
    flips = found["report"]["verdicts"]["changes"]["to_denied"]
    assert (flips["number"], flips["oldest"]) == (1, recorded[1])
    assert flips["by"]["owner"]["groups"][0]["key"] == "ns/Pod web"
    listed = call(secret, "get", "replays/?state=done").json()["results"]
    assert [each["uid"] for each in listed] == [found["uid"]]
    assert "report" not in listed[0]


def test_documents_may_be_a_text_of_yaml(cluster: Cluster) -> None:
    text = (
        "apiVersion: v1\nkind: LimitRange\nmetadata: {name: a, namespace: ns}\n"
        "spec: {limits: [{type: Pod, max: {cpu: 0.5}}]}\n"
    )
    assert requested(viewer(), manifests=text).json()["namespaces"] == ["ns"]


def test_a_deletion_is_proposed_without_manifests(cluster: Cluster) -> None:
    deletion = {"kind": "LimitRange", "namespace": "ns", "name": "limits"}
    answer = requested(viewer("ns"), manifests=[], deletions=[deletion])
    assert answer.status_code == 202, answer.content
    assert answer.json()["namespaces"] == ["ns"]


def test_a_dry_run_requests_nothing(cluster: Cluster) -> None:
    answer = call(viewer(), "post", "replays/?dryRun=All", BODY)
    assert (answer.status_code, answer.json()["uid"]) == (202, None)
    assert not Replay.objects.exists()


def test_by_default_the_last_seven_days_are_replayed(cluster: Cluster) -> None:
    body = {"cluster": "demo", "manifests": [PROPOSED]}
    made = call(viewer(), "post", "replays/", body).json()
    since, until = (dt.datetime.fromisoformat(made[name]) for name in ("since", "until"))
    assert until - since == dt.timedelta(days=7)


@pytest.mark.parametrize(
    ("changed", "field", "code"),
    [
        ({"cluster": "none"}, "cluster", "unknown_cluster"),
        ({"namespaces": ["hidden"]}, "namespaces", "unknown_namespace"),
        ({"manifests": [{**PROPOSED, "metadata": {"name": "a", "namespace": "hidden"}}]},
         "namespaces", "unknown_namespace"),
        ({"manifests": []}, "manifests", "required"),
        ({"manifests": [{**PROPOSED, "spec": {"limits": 5}}]}, "manifests[0].spec.limits", ""),
        ({"query": "odd:word"}, "query", "invalid"),
        ({"since": UNTIL, "until": SINCE}, "since", "invalid"),
        ({"days": "7"}, "days", "FieldValueTypeInvalid"),
        ({"namespaces": "ns"}, "namespaces", "FieldValueTypeInvalid"),
        ({"odd": 1}, "odd", "unknown_field"),
    ],
)  # fmt: skip
def test_what_cannot_be_replayed_is_refused(
    cluster: Cluster, changed: Any, field: str, code: str
) -> None:
    answer = requested(viewer("ns"), **changed)
    assert answer.status_code == 422, answer.content
    (found,) = answer.json()["errors"][field]
    assert not code or found["code"] == code
    assert not Replay.objects.exists()


@pytest.mark.parametrize(
    "changed",
    [{"days": 0}, {"days": 367}, {"manifests": 5}, {"decisions": ["odd"]}, {"since": "soon"}],
)
def test_values_out_of_bounds_are_refused(cluster: Cluster, changed: Any) -> None:
    assert requested(viewer(), **changed).status_code == 400


def test_a_body_that_is_no_map_is_refused(cluster: Cluster) -> None:
    assert call(viewer(), "post", "replays/", []).status_code == 422


def test_limited_resources_of_a_whole_cluster_are_for_those_who_see_it(cluster: Cluster) -> None:
    configuration = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "ResourceQuotaConfiguration",
        "limitedResources": [{"resource": "pods", "matchContains": ["cpu"]}],
    }
    assert requested(viewer("ns"), manifests=[configuration]).status_code == 403
    assert requested(viewer(name="bob"), manifests=[configuration]).status_code == 202


def test_only_who_sees_all_of_it_reads_a_replay(cluster: Cluster) -> None:
    uid = requested(viewer()).json()["uid"]
    assert call(viewer("ns", "bob"), "get", f"replays/{uid}/").status_code == 200
    assert call(viewer("other", "eve"), "get", f"replays/{uid}/").status_code == 404
    assert call(viewer("other", "mallory"), "post", f"replays/{uid}/cancel/").status_code == 404


def test_a_list_has_ones_own_and_those_of_whole_clusters(cluster: Cluster) -> None:
    requested(viewer())
    assert call(viewer("ns", "bob"), "get", "replays/").json()["count"] == 0
    assert call(viewer("", "eve"), "get", "replays/").json()["count"] == 1


def test_ones_own_is_cancelled(cluster: Cluster) -> None:
    secret = viewer("ns")
    uid = requested(secret).json()["uid"]
    assert call(secret, "post", f"replays/{uid}/cancel/").json()["state"] == "cancelled"
    assert call(secret, "post", f"replays/{uid}/cancel/").json()["state"] == "cancelled"


def test_that_of_others_by_an_admin_alone(cluster: Cluster) -> None:
    uid = requested(viewer()).json()["uid"]
    assert call(viewer("", "bob"), "post", f"replays/{uid}/cancel/").status_code == 403
    admin = people.nobody("root")
    people.bind(admin, "admin", cluster="demo")
    cancelled = call(secret_of(admin), "post", f"replays/{uid}/cancel/")
    assert cancelled.json()["state"] == "cancelled"


def test_too_many_at_once_are_refused(cluster: Cluster) -> None:
    secret = viewer()
    for _ in range(work.MOST_OPEN):
        assert requested(secret).status_code == 202
    assert requested(secret).status_code == 429


def test_a_list_costs_as_many_queries_for_many(
    cluster: Cluster, django_assert_max_num_queries: Any
) -> None:
    secret = viewer()
    for _ in range(work.MOST_OPEN):
        requested(secret)
    with django_assert_max_num_queries(8):
        assert call(secret, "get", "replays/").json()["count"] == work.MOST_OPEN
