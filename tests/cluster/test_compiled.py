"""Compiled policies on a live API server refuse exactly what the engine refuses."""

from __future__ import annotations

import contextlib
import os
import secrets
from typing import TYPE_CHECKING, Any

import pytest

from engine.compiled import MOST_CONTAINERS, compile_limit_range
from engine.limit_range import decode_limit_range
from tests.cluster.api_client import ApiClient
from tests.cluster.compiled_cases import (
    remove,
    run_metadata,
    run_ranges,
    wait_until_enforced,
    write,
)
from tests.cluster.update_cases import run_updates
from tests.cluster.worlds import prepare_cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.cluster.compiled_cases import Tally
    from tests.cluster.servers import Cluster

CASES = int(os.environ.get("COMPILED_CASES") or (20_000 if os.environ.get("WHOLE") else 400))


@pytest.fixture(scope="module")
def api(bare_cluster: Cluster) -> Iterator[ApiClient]:
    with contextlib.closing(ApiClient(bare_cluster)) as made:
        prepare_cluster(made)
        yield made


@pytest.mark.cluster
@pytest.mark.parametrize(("run", "share"), [(run_ranges, 0.5), (run_metadata, 0.2)])
def test_compiled_policies_refuse_what_the_engine_refuses(
    api: ApiClient,
    run: Callable[[ApiClient, int, int], Tally],
    share: float,
    capsys: pytest.CaptureFixture[str],
) -> None:
    seed = int(os.environ.get("COMPILED_SEED") or secrets.randbelow(10**6))
    tally = run(api, seed, int(CASES * share))
    with capsys.disabled():
        print(f"\n{tally.cases} cases, COMPILED_SEED={seed}", *shown(tally), sep="\n  ")  # noqa: T201 - the figures
    assert tally.differences == []
    assert set(tally.messages) <= {"equal", "without a figure"}
    # Few answers may be those of the API's own validation, or nothing would be compared.
    assert sum(tally.apart.values()) < tally.cases / 5
    refused = sum(n for verdict, n in tally.verdicts.items() if verdict.endswith("refused"))
    assert tally.cases * 0.1 < refused < tally.cases * 0.8


@pytest.mark.cluster
def test_compiled_policies_set_what_the_engine_sets(
    api: ApiClient, capsys: pytest.CaptureFixture[str]
) -> None:
    seed = int(os.environ.get("COMPILED_SEED") or secrets.randbelow(10**6))
    tally = run_updates(api, seed, int(CASES * 0.3))
    with capsys.disabled():
        print(f"\n{tally.cases} cases, COMPILED_SEED={seed}", *shown(tally), sep="\n  ")  # noqa: T201 - the figures
    assert tally.differences == []
    changed = sum(n for outcome, n in tally.verdicts.items() if outcome.endswith(": set"))
    assert tally.cases * 0.2 < changed < tally.cases * 0.8


def shown(tally: Tally) -> list[Any]:
    return [
        dict(sorted(tally.verdicts.items())),
        f"messages {dict(tally.messages)}",
        f"by the API's own validation {dict(tally.apart)}",
        f"not expressible {dict(tally.missing)}",
    ]


NAMES = ("cpu", "memory", "ephemeral-storage", *(f"example.com/r{n}" for n in range(40)))
PARTS = {"min": "1n", "max": "1P", "maxLimitRequestRatio": "1.333"}


def costly_range(kind: str) -> dict[str, Any]:
    """A range with as many bounds as the server's cost limit allows, and more."""
    item = {part: dict.fromkeys(NAMES, amount) for part, amount in PARTS.items()}
    return {
        "metadata": {"name": "lr", "namespace": f"costly-{kind.lower()}"},
        "spec": {"limits": [{"type": kind, **item}]},
    }


def large_pod(steady: int, init: int, amount: str = "3") -> dict[str, Any]:
    amounts = dict.fromkeys(NAMES, amount)
    resources = {"requests": amounts, "limits": amounts}
    containers, init_containers = (
        [{"name": f"{kind}{n}", "image": "i", "resources": resources} for n in range(number)]
        for kind, number in (("c", steady), ("i", init))
    )
    for container in init_containers[::2]:
        container["restartPolicy"] = "Always"
    spec = {"containers": containers, "initContainers": init_containers}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}


@pytest.mark.cluster
@pytest.mark.parametrize("kind", ["Container", "Pod"])
def test_no_pod_exceeds_the_cost_limit_of_the_api_server(api: ApiClient, kind: str) -> None:
    manifest = costly_range(kind)
    namespace = manifest["metadata"]["namespace"]
    api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    compiled = compile_limit_range(decode_limit_range(manifest))
    costly = [each.field for each in compiled.not_expressible if "cost limit" in each.why]
    assert 0 < len(costly) < len(NAMES) * len(PARTS)
    write(api, compiled)
    wait_until_enforced(api)
    half = MOST_CONTAINERS // 2
    for steady, init in ((MOST_CONTAINERS, 0), (half, half), (1, MOST_CONTAINERS - 1)):
        assert api.create(large_pod(steady, init), namespace, dry=True).code == 201
    # Where everything is wrong, too, the message is about that.
    answer = api.create(large_pod(MOST_CONTAINERS, 0, "0"), namespace, dry=True)
    assert (answer.code, "minimum cpu usage per" in answer.message) == (403, True)
    answer = api.create(large_pod(MOST_CONTAINERS, 1), namespace, dry=True)
    assert f"pods of at most {MOST_CONTAINERS} containers" in answer.message
    remove(api, compiled)
