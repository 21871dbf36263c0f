"""Members picked from an answer by dotted paths."""

from __future__ import annotations

from typing import Any

import pytest

from policies.lists.members import picked

QUOTA: dict[str, Any] = {
    "id": 1,
    "metadata": {"name": "q", "labels": {"app.kubernetes.io/name": "web", "app": "x"}},
    "spec": {"hard": {"requests.cpu": "1", "requests.memory": "2", "requests": "3"}},
    "limits": [{"type": "Pod", "max": {"cpu": "1"}}, {"type": "Container"}, "text"],
    "before": None,
}


@pytest.mark.parametrize(
    ("paths", "members"),
    [
        (["id"], {"id": 1}),
        (["metadata.name", "id"], {"id": 1, "metadata": {"name": "q"}}),
        (["metadata.labels.app"], {"metadata": {"labels": {"app": "x"}}}),
        (
            ["metadata.labels.app.kubernetes.io/name"],
            {"metadata": {"labels": {"app.kubernetes.io/name": "web"}}},
        ),
        (["spec.hard.requests.cpu"], {"spec": {"hard": {"requests.cpu": "1"}}}),
        (["spec.hard", "spec.hard.requests"], {"spec": QUOTA["spec"]}),
        (["metadata", "metadata.name"], {"metadata": QUOTA["metadata"]}),
        (["limits.type"], {"limits": [{"type": "Pod"}, {"type": "Container"}]}),
        (["limits.max.cpu"], {"limits": [{"max": {"cpu": "1"}}, {}]}),
        (["before"], {"before": None}),
        (["before.metadata"], {}),
        (["id.more"], {}),
        (["spec.soft"], {"spec": {}}),
    ],
)
def test_only_the_named_members_stay(paths: list[str], members: dict[str, Any]) -> None:
    assert picked(QUOTA, paths) == members


def test_members_keep_their_order_and_the_object_stays() -> None:
    assert list(picked(QUOTA, ["spec", "metadata", "id"])) == ["id", "metadata", "spec"]
    assert "before" in QUOTA
