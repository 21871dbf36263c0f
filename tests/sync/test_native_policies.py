"""What was last seen of a cluster decides which of its policies the API server enforces."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from policies import services, snapshot
from sync import policy_writes
from sync.models import SyncedObject
from tests import factories

pytestmark = pytest.mark.django_db


def seen(**fields: Any) -> None:
    now = timezone.now()
    key = {"kind": "LimitRange", "namespace": "team", "name": "lr"}
    SyncedObject.objects.update_or_create(
        cluster=factories.cluster(), **key, defaults={"since": now, "seen": now, **fields}
    )


def authority() -> str:
    return str(snapshot.refresh().clusters["prod"].policy_set("team").authority)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({"state": "in-sync", "theirs": {}}, "native", id="there"),
        pytest.param({"state": "unowned", "theirs": {}}, "native", id="there-unowned"),
        pytest.param({"state": "drifted", "theirs": {}}, "native", id="there-otherwise"),
        pytest.param({"state": "pending", "theirs": None}, "portal", id="not-yet"),
        pytest.param(
            {"state": "in-sync", "theirs": {}, "gone": timezone.now()}, "portal", id="gone"
        ),
    ],
)
def test_range_is_the_api_servers_once_it_is_there(fields: dict[str, Any], expected: str) -> None:
    factories.limit_range({"type": "Pod", "max": {"cpu": "1"}})
    services.set_authority(cluster=factories.cluster(), authority="native", user="root")
    seen(**fields)
    policy_writes.note_native(factories.cluster())
    assert authority() == expected


def test_other_namespaces_are_left_as_they_are() -> None:
    factories.limit_range({"type": "Pod", "max": {"cpu": "1"}})
    seen(state="in-sync", theirs={})
    assert policy_writes.note_native(factories.cluster(), ["other"]) == []
    assert policy_writes.note_native(factories.cluster(), ["team"]) == ["team"]
