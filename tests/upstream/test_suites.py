"""Kubernetes' own tests of LimitRange and ResourceQuota pass, natively and with Gatehouse.

``ROUNDS`` repeats them on the same cluster; ``QUICK`` runs only the quickest, and only where the
portal replaces the plugins. ``RESYNC`` is the interval in which the quota controller recounts
everything: a short one saves minutes, and hides amounts that nobody charges. Logs and reports stay
in ``var/e2e``.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pytest

from tests.cluster.binaries import DEFAULT, RELEASES, Binaries, find, missing
from tests.processes import ROOT
from tests.upstream import build, suite
from tests.upstream.plane import control_plane
from tests.upstream.product import gatehouse

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cluster.servers import Cluster

pytestmark = pytest.mark.upstream

ROUNDS: Final = int(os.environ.get("ROUNDS") or 1)
RESYNC: Final = os.environ.get("RESYNC") or "5m"
"""The default is Kubernetes' own."""
NAMES: Final = suite.quickest() if os.environ.get("QUICK") else ()


@dataclass(frozen=True, slots=True)
class Arrangement:
    """Who enforces: the API server's own plugins, or the portal; without authority, no portal."""

    name: str
    plugins: bool
    authority: str


ARRANGEMENTS: Final = (
    Arrangement("native", plugins=True, authority=""),
    Arrangement("beside", plugins=True, authority="native"),
    Arrangement("replaced", plugins=False, authority="portal"),
)


@dataclass(frozen=True, slots=True)
class Site:
    """A cluster in one of the arrangements, and the folder of its logs."""

    cluster: Cluster
    arrangement: Arrangement
    logs: Path


@pytest.fixture(scope="module")
def programs() -> tuple[Binaries, Path]:
    servers, tests = find(), build.find()
    if not (servers and tests and servers.controller_manager):
        lacking = [*missing(), *([] if tests else [build.PROGRAM])]
        pytest.skip(
            f"KUBERNETES' OWN TESTS ARE NOT RUN: there is no {', '.join(lacking)} of "
            f"{RELEASES[DEFAULT]}; make test-e2e builds them where there is Go"
        )
    return servers, tests


@pytest.fixture(
    scope="module",
    params=[each for each in ARRANGEMENTS if not NAMES or each.authority == "portal"],
    ids=lambda arrangement: arrangement.name,
)
def site(programs: tuple[Binaries, Path], request: pytest.FixtureRequest) -> Iterator[Site]:
    arrangement: Arrangement = request.param
    logs = ROOT / "var" / "e2e" / arrangement.name
    shutil.rmtree(logs, ignore_errors=True)
    logs.mkdir(parents=True)
    with contextlib.ExitStack() as stack:
        servers, _ = programs
        plane = control_plane(servers, logs, plugins=arrangement.plugins, resync=RESYNC)
        cluster = stack.enter_context(plane)
        if arrangement.authority:
            stack.enter_context(gatehouse(cluster, logs, arrangement.authority))
        yield Site(cluster, arrangement, logs)


@pytest.mark.parametrize("number", range(1, ROUNDS + 1))
def test_all_tests_of_kubernetes_pass(
    site: Site,
    programs: tuple[Binaries, Path],
    number: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = site.logs / f"round-{number}"
    folder.mkdir()
    outcomes = suite.run(programs[1], site.cluster.kubeconfig, folder, NAMES)
    (folder / "summary.txt").write_text(suite.listed(outcomes))
    with capsys.disabled():
        where = f"e2e, {site.arrangement.name}, round {number}"
        logs = folder.relative_to(ROOT)
        print(f"\ngatehouse: {where}: {suite.told(outcomes)}; logs in {logs}")  # noqa: T201 - minutes pass without a line
    failed = [outcome for outcome in outcomes if not outcome.passed]
    if failed:
        pytest.fail(f"{len(failed)} of {len(outcomes)}:\n{suite.listed(failed)}", pytrace=False)
    assert len(outcomes) == (len(NAMES) or suite.TOTAL)
