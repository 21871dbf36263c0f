"""The seeds' examples over HTTP: the verdicts of an API server's own plugins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jsonpatch
import pytest

from policies import services
from tests.builders import Manifest, container
from tests.reviews import SEED_LIMITS, new_pod, patch_of, quota, review

if TYPE_CHECKING:
    from collections.abc import Callable

    from policies.models import Cluster

pytestmark = pytest.mark.django_db

RATIO = "cpu max limit to request ratio per Container is 4, but "
TWENTY = "provided ratio is 20.000000"
NO_REQUEST = "no request is specified or request is 0"
# what the container asks for, its resources after mutation, and the refusal's text
LIMIT_RANGE_CASES = {
    "nothing": (
        {},
        {
            "requests": {"cpu": "250m", "memory": "250Mi"},
            "limits": {"cpu": "500m", "memory": "500Mi"},
        },
        "",
    ),
    "limit cpu 1": (
        {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}},
        {
            "requests": {"cpu": "1", "memory": "250Mi"},
            "limits": {"cpu": "1", "memory": "500Mi"},
        },
        "",
    ),
    "request cpu 100m": (
        {"requests": {"cpu": "100m"}},
        {
            "requests": {"cpu": "100m", "memory": "250Mi"},
            "limits": {"cpu": "500m", "memory": "500Mi"},
        },
        f"{RATIO}provided ratio is 5.000000",
    ),
    "request cpu 125m": ({"requests": {"cpu": "125m"}}, None, ""),
    "request and limit cpu 50m": (
        {"requests": {"cpu": "50m"}, "limits": {"cpu": "50m"}},
        None,
        "minimum cpu usage per Container is 100m, but request is 50m",
    ),
    "request 500m, limit 2": (
        {"requests": {"cpu": "500m"}, "limits": {"cpu": "2"}},
        None,
        "maximum cpu usage per Container is 1, but limit is 2",
    ),
    "request 100m, limit 2": (
        {"requests": {"cpu": "100m"}, "limits": {"cpu": "2"}},
        None,
        f"[maximum cpu usage per Container is 1, but limit is 2, {RATIO}{TWENTY}]",
    ),
    "limit memory 2Gi": (
        {"requests": {"memory": "2Gi"}, "limits": {"memory": "2Gi"}},
        None,
        "maximum memory usage per Container is 1Gi, but limit is 2Gi",
    ),
    "limit cpu 0": (
        {"requests": {"cpu": "0"}, "limits": {"cpu": "0"}},
        None,
        f"[minimum cpu usage per Container is 100m, but request is 0, {RATIO}{NO_REQUEST}]",
    ),
}


@pytest.mark.parametrize(
    ("asked", "stored", "refusal"), LIMIT_RANGE_CASES.values(), ids=LIMIT_RANGE_CASES
)
def test_the_limit_range_example(
    *,
    ask: Callable[..., Any],
    apply: Callable[..., None],
    asked: Manifest,
    stored: Manifest | None,
    refusal: str,
) -> None:
    apply(SEED_LIMITS)
    made = new_pod("p", container(**asked))
    operations = patch_of(ask(review(made), phase="mutate").json())
    mutated = jsonpatch.apply_patch(made, operations)
    if stored is not None:
        assert mutated["spec"]["containers"][0]["resources"] == stored
    answer = ask(review(mutated)).json()["response"]
    assert answer["allowed"] is not bool(refusal)
    if refusal:
        assert answer["status"]["message"].startswith(f'pods "p" is forbidden: {refusal} (decision')


SELECTOR_IN = {
    "matchExpressions": [
        {"scopeName": "PriorityClass", "operator": "In", "values": ["cluster-services"]}
    ]
}
SELECTOR_EXISTS = {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "Exists"}]}
SYSTEM = "kube-system"
UNCOVERED_IN = "insufficient quota to match these scopes: [{PriorityClass In [cluster-services]}]"
UNCOVERED_EXISTS = "insufficient quota to match these scopes: [{PriorityClass Exists []}]"
# the story's matchScopes, the quota's selector, priority class, namespace; refusal, charged
STORIES = {
    "1: none": (SELECTOR_IN, SELECTOR_IN, "", SYSTEM, "", "0"),
    "1: other": (SELECTOR_IN, SELECTOR_IN, "other", "elsewhere", "", "0"),
    "1: covered": (SELECTOR_IN, SELECTOR_IN, "cluster-services", SYSTEM, "", "1"),
    "1: elsewhere": (SELECTOR_IN, SELECTOR_IN, "cluster-services", "else", UNCOVERED_IN, "0"),
    "2: none": (SELECTOR_EXISTS, SELECTOR_IN, "", SYSTEM, "", "0"),
    "2: covered": (SELECTOR_EXISTS, SELECTOR_IN, "cluster-services", SYSTEM, "", "1"),
    "2: other": (SELECTOR_EXISTS, SELECTOR_IN, "other", SYSTEM, UNCOVERED_EXISTS, "0"),
    "2: Exists quota": (SELECTOR_EXISTS, SELECTOR_EXISTS, "other", SYSTEM, "", "1"),
    "2: elsewhere": (SELECTOR_EXISTS, SELECTOR_IN, "other", "else", UNCOVERED_EXISTS, "0"),
}


@pytest.mark.parametrize(
    ("scopes", "selector", "priority", "namespace", "refusal", "charged"),
    STORIES.values(),
    ids=STORIES,
)
def test_the_quota_stories(  # noqa: PLR0913 - a table has columns
    *,
    ask: Callable[..., Any],
    apply: Callable[..., None],
    cluster: Cluster,
    used: Callable[[], str],
    scopes: Manifest,
    selector: Manifest,
    priority: str,
    namespace: str,
    refusal: str,
    charged: str,
) -> None:
    entry = {"resource": "pods", "matchScopes": scopes["matchExpressions"]}
    services.set_limited_resources(cluster=cluster, entries=[entry], user="root")
    apply(quota(namespace=SYSTEM, hard={"pods": "10"}, scopeSelector=selector))
    made = new_pod("p", container(), namespace=namespace, **_priority(priority))
    answer = ask(review(made, namespace=namespace)).json()["response"]
    message = answer.get("status", {}).get("message", "")
    assert message.startswith(f"{refusal} (decision" if refusal else "")
    assert (answer["allowed"], used()) == (not refusal, charged)


def _priority(name: str) -> Manifest:
    return {"priorityClassName": name} if name else {}


def test_the_eleventh_pod_of_the_first_story_is_refused(
    ask: Callable[..., Any], apply: Callable[..., None]
) -> None:
    apply(quota(namespace=SYSTEM, hard={"pods": "10"}, scopeSelector=SELECTOR_IN))
    verdicts = []
    for number in range(11):
        made = new_pod(f"p{number}", namespace=SYSTEM, priorityClassName="cluster-services")
        answer = ask(review(made, namespace=SYSTEM)).json()["response"]
        verdicts.append(answer["allowed"])
    assert verdicts == [True] * 10 + [False]
    assert "used: pods=10, limited: pods=10" in answer["status"]["message"]
