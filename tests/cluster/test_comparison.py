"""The comparison reports real differences and excuses those of an API server's order."""

from __future__ import annotations

from typing import Any

import pytest

from engine.wire import dumps, loads
from tests.cluster.comparison import Verdict, compare
from tests.cluster.conformance import Tally
from tests.cluster.worlds import Observed

CONTAINERS = [{"name": "c", "image": "i", "resources": {"limits": {"cpu": "2"}}}]
MAXIMUM = "maximum cpu usage per Container is 1, but limit is 2"
MINIMUM = "minimum cpu usage per Container is 3, but request is 2"
REFUSED = f'pods "p" is forbidden: [{MINIMUM}, {MAXIMUM}]'
NOTE = "LimitRanger plugin set: memory request for container c"


def limit_range(name: str, **item: Any) -> dict[str, Any]:
    metadata, spec = {"name": name}, {"limits": [{"type": "Container", **item}]}
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": metadata, "spec": spec}


def case(*policies: dict[str, Any]) -> dict[str, Any]:
    metadata, spec = {"name": "p", "namespace": "n"}, {"containers": CONTAINERS}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    request = {"operation": "CREATE", "namespace": "n", "object": pod}
    return {"policies": list(policies), "request": request, "phase": "both"}


def stored(memory: str, note: str = NOTE) -> Observed:
    resources = {
        "limits": {"cpu": "2"},
        "requests": {"cpu": "2", **({"memory": memory} if memory else {})},
    }
    spec = {"containers": [{"name": "c", "resources": resources}]}
    annotations = {"kubernetes.io/limit-ranger": note}
    return Observed(201, "", {"metadata": {"annotations": annotations}, "spec": spec}, None)


def refused(message: str, code: int = 403) -> Observed:
    return Observed(code, message, {}, None)


BOTH = limit_range("a", max={"cpu": "1"}, min={"cpu": "3"})
MEMORY = limit_range("a", defaultRequest={"memory": "1Mi"})


@pytest.mark.parametrize(
    ("policy", "observed", "marks"),
    [
        (BOTH, refused(REFUSED), []),
        (BOTH, refused(f'pods "p" is forbidden: [{MAXIMUM}, {MINIMUM}]'), []),
        (BOTH, refused(f'pods "p" is forbidden: {MAXIMUM}'), ["message"]),
        (BOTH, refused(REFUSED, 500), ["code"]),
        (BOTH, stored(""), ["verdict"]),
        (MEMORY, stored("1Mi"), []),
        (MEMORY, stored("2Mi"), ["resources"]),
        (MEMORY, stored("1024Ki"), ["resources"]),
        (MEMORY, stored("1Mi", "other"), ["annotation"]),
        (MEMORY, refused('pods "p" is forbidden: exceeded quota: q'), ["verdict"]),
    ],
)
def test_difference_is_reported(policy: Any, observed: Observed, marks: list[str]) -> None:
    verdict = compare(case(policy), observed)
    assert [difference.mark for difference in verdict.differences] == marks
    assert verdict.apart == ""


def test_one_of_several_ranges_may_be_the_one_that_refuses() -> None:
    policies = (limit_range("a", min={"cpu": "3"}), limit_range("b", max={"cpu": "1"}))
    for message in (MINIMUM, MAXIMUM):
        assert not compare(
            case(*policies), refused(f'pods "p" is forbidden: {message}')
        ).differences


def test_ranges_may_set_defaults_in_any_order() -> None:
    later = limit_range("b", defaultRequest={"memory": "2Mi"})
    verdict = compare(case(MEMORY, later), stored("2Mi"))
    assert (verdict.differences, verdict.by_order) == ((), True)


def test_excluded_differences_are_named() -> None:
    beyond = limit_range("a", max={"cpu": "10P"})
    assert compare(case(beyond), refused("x")).apart == "numbers beyond 9.2e15"
    ratio = limit_range("a", maxLimitRequestRatio={"cpu": "1"})
    text = "cpu max limit to request ratio per Container is 1, but provided ratio is 1.000000"
    exact = refused(f'pods "p" is forbidden: {text}')
    assert compare(case(ratio), exact).apart == "ratio met exactly"
    other = refused('pods "p" is forbidden: no PriorityClass with name x was found')
    assert compare(case(ratio), other).apart == "refused by another plugin"


def quota(name: str, hard: str) -> dict[str, Any]:
    amounts = {"hard": {"requests.memory": hard}, "used": {"requests.memory": "0"}}
    return {"kind": "ResourceQuota", "metadata": {"name": name}, "status": amounts}


def test_a_sum_of_the_pod_is_spelled_as_servers_do() -> None:
    containers = [
        {"name": name, "image": "i", "resources": {"requests": {"memory": memory}}}
        for name, memory in (("a", "256000Ki"), ("b", "1e8"))
    ]
    given = case(quota("q", "1"), quota("r", "2"))
    own = {"limits": {"cpu": "4"}}
    given["request"]["object"]["spec"] = {"containers": containers, "resources": own}
    amounts = "requested: requests.memory={}, used: requests.memory=0, limited: requests.memory=1"
    text = 'pods "p" is forbidden: exceeded quota: q, ' + amounts
    assert compare(given, refused(text.format("362144000"))).differences == ()
    other = compare(given, refused(text.format("362144k")))
    assert (len(other.differences), other.apart) == (1, "")


def test_overhead_that_the_plugin_adds_twice_does_not_count() -> None:
    given = case(quota("q", "1Gi"))
    containers = [{"name": "c", "image": "i", "resources": {"requests": {"memory": "0.125Gi"}}}]
    own = {"requests": {"memory": "0.125Gi"}}
    spec = {"containers": containers, "resources": own, "overhead": {"memory": "64Mi"}}
    given["request"]["object"]["spec"] = spec
    given["limitedResources"] = [{"resource": "pods", "matchContains": ["cpu"]}]
    stored = loads(dumps(spec).replace("0.125Gi", "128Mi").encode())
    kept = Observed(
        code=201, message="", object={"spec": stored}, used={"q": {"requests.memory": "256Mi"}}
    )
    assert compare(given, kept).apart == "overhead added twice"
    other = Observed(
        code=201, message="", object={"spec": stored}, used={"q": {"requests.memory": "255Mi"}}
    )
    assert compare(given, other).apart == ""
    given["policies"] = [quota("q", "200Mi")]
    text = (
        'pods "p" is forbidden: exceeded quota: q, requested: requests.memory={}, '
        "used: requests.memory=0, limited: requests.memory=200Mi"
    )
    assert compare(given, refused(text.format("256Mi"))).apart == "overhead added twice"
    assert compare(given, refused(text.format("255Mi"))).apart == ""
    given["policies"] = [quota("q", "1Gi")]
    del given["limitedResources"]
    assert compare(given, kept).apart == ""


def test_huge_pages_that_only_webhooks_bring_up_to_the_pod_do_not_count() -> None:
    given = case(limit_range("a", default={"hugepages-2Mi": "2Mi"}))
    given["request"]["object"]["spec"] = {
        "containers": CONTAINERS,
        "resources": {"limits": {"cpu": "4"}},
    }
    both = {"cpu": "2", "hugepages-2Mi": "2Mi"}
    containers = [{"name": "c", "resources": {"limits": both, "requests": both}}]
    spec = {
        "containers": containers,
        "resources": {"limits": {"cpu": "4"}, "requests": {"cpu": "2"}},
    }
    sides = ("hugepages-2Mi request for container c", "hugepages-2Mi limit for container c")
    note = f"LimitRanger plugin set: {'; '.join(sides)}"
    metadata = {"annotations": {"kubernetes.io/limit-ranger": note}}
    verdict = compare(given, Observed(201, "", {"metadata": metadata, "spec": spec}, None))
    assert verdict.apart == "huge pages of the pod after webhooks"
    containers[0]["resources"]["limits"] = {"cpu": "3"}
    verdict = compare(given, Observed(201, "", {"metadata": metadata, "spec": spec}, None))
    assert verdict.apart == ""


def test_the_first_reason_is_reported() -> None:
    assert compare(case(BOTH), refused(REFUSED)).reason == "MinConstraint"
    assert compare(case(MEMORY), stored("1Mi")).reason == ""


def test_shares_count_only_compared_cases() -> None:
    tally, given = Tally(0), {"operation": "CREATE", "posted": {"kind": "Pod"}}
    for code, apart in ((201, ""), (403, ""), (403, ""), (403, ""), (422, "refused elsewhere")):
        tally.add(given, Observed(code, "", {}, None), Verdict(apart=apart))
    assert tally.shares() == {"CREATE pod": (0.25, 0.75)}
    assert tally.apart == {"refused elsewhere": 1}
