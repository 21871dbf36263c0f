"""Who enforces what, and what ownership would do, are read by those who see the whole cluster."""

from __future__ import annotations

import pytest

from tests import factories
from tests.sync.api.calls import client, send
from tests.sync.enforcement import world

pytestmark = pytest.mark.django_db
PLACE = "clusters/prod/enforcement/"
PREVIEW = "clusters/prod/ownership/preview/"


def test_the_survey_is_what_the_command_shows() -> None:
    factories.limit_range({"type": "Pod", "max": {"cpu": "1"}})
    factories.limit_range({"type": "Pod", "max": {"cpu": "1"}}, namespace="kube-system")
    shown = send("get", PLACE, code=200, who=client("viewer"))
    assert (shown["authority"], shown["is_complete"], shown["webhook"]) == (
        "portal",
        False,
        "not-checked",
    )
    by_namespace = {each["namespace"]: each["enforcer"] for each in shown["holdings"]}
    assert by_namespace == {"kube-system": "nobody", "team": "portal"}
    assert [each["code"] for each in shown["missing"]] == ["connection", "webhook", "left-out"]
    assert shown["missing"][0]["command"].endswith("connect_cluster prod --kubeconfig FILE")
    part = send("get", f"{PLACE}?namespace=team", code=200)
    assert [each["namespace"] for each in part["holdings"]] == ["team"]
    assert [each["code"] for each in part["missing"]] == ["connection", "webhook"]


@pytest.mark.parametrize("place", [PLACE, PREVIEW])
def test_who_sees_a_part_of_the_cluster_sees_neither(place: str) -> None:
    factories.cluster("prod")
    send("get", place, code=404, who=client("viewer", cluster="prod", namespace="team"))
    send("get", place, code=404, who=client("admin", cluster="other"))
    send("get", place, code=200, who=client("viewer", cluster="prod"))
    send("get", f"{place}?nothing=x", code=400)


def test_a_preview_names_what_would_be_written() -> None:
    world.quota({"pods": "5"})
    world.quota({"pods": "5"}, name="b", namespace="other")
    send("get", f"{PREVIEW}?kind=ResourceQuota&name=b", code=400)
    found = send("get", PREVIEW, code=200)["objects"]
    assert [(each["name"], each["action"], each["is_owned"]) for each in found] == [
        ("b", "create", False),
        ("rq", "create", False),
    ]
    send("get", f"{PREVIEW}?namespace=nowhere", code=400)
    world.both_sides(factories.cluster(), "unowned", namespace="other", name="x")
    part = send("get", f"{PREVIEW}?namespace=other", code=200)["objects"]
    assert [each["name"] for each in part if each["action"] == "create"] == ["b"]
