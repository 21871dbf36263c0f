"""Who enforces ranges and quotas is read by who sees the cluster, and switched with a reason."""

from __future__ import annotations

import pytest

from policies.models import Cluster, PolicyRevision
from tests import factories
from tests.sync.api.calls import client, etag, send

pytestmark = pytest.mark.django_db
PLACE = "clusters/prod/authority/"


def test_the_authority_is_switched_on_record() -> None:
    factories.resource_quota({"pods": "5"})
    shown = send("get", PLACE, code=200, who=client("viewer"))
    assert (shown["authority"], shown["quotas"]) == ("portal", 1)
    assert shown["not_native"] == {"team": ["ResourceQuota rq"]}
    wanted = {"authority": "native", "reason": "plugins are on"}
    read = etag(PLACE)
    send("put", f"{PLACE}?dryRun=All", wanted, code=200)
    assert Cluster.objects.get().authority == "portal"
    switched = send("put", PLACE, wanted, code=200, if_match=read)
    assert (switched["authority"], Cluster.objects.get().authority) == ("native", "native")
    newest = PolicyRevision.objects.filter(kind="Cluster").order_by("-id")[0]
    assert (newest.user, newest.reason) == ("admin", "plugins are on")
    send("put", PLACE, {**wanted, "authority": "portal"}, code=412, if_match=read)


@pytest.mark.parametrize(
    ("wanted", "field"),
    [
        ({"authority": "native"}, "reason"),
        ({"authority": "native", "reason": ""}, "reason"),
        ({"authority": "nobody", "reason": "why"}, "authority"),
        ({"reason": "why"}, "authority"),
    ],
)
def test_a_switch_that_is_none_is_refused_by_field(wanted: dict[str, str], field: str) -> None:
    factories.cluster("prod")
    assert list(send("put", PLACE, wanted, code=400)["errors"]) == [field]


def test_who_may_switch() -> None:
    factories.cluster("prod")
    wanted = {"authority": "native", "reason": "why"}
    for role in ("viewer", "editor", "approver"):
        send("put", PLACE, wanted, code=403, who=client(role))
    send("put", PLACE, wanted, code=404, who=client("admin", cluster="other"))
    send("get", PLACE, code=404, who=client("viewer", cluster="prod", namespace="team"))
    send("put", PLACE, wanted, code=200, who=client("admin", cluster="prod"))
