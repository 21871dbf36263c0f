"""Runs Kubernetes' own tests against an API server, and reads their report."""

from __future__ import annotations

import json
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.faults.database import bound

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

SUITES: Final = (r"\[sig-api-machinery\] ResourceQuota", r"\[sig-scheduling\] LimitRange")
TOTAL: Final = 30
"""The tests of both suites in the release that ``tests.cluster`` runs."""
LIMIT: Final = 3600.0
"""Seconds; a test that waits in vain takes five minutes."""
_QUICKEST: Final = Path(__file__).with_name("quickest.txt")
_FLAGS: Final = (
    "--provider=skeleton",
    "--num-nodes=1",
    "--minStartupPods=0",
    # The node is an object without a kubelet, so nothing waits for it.
    "--allowed-not-ready-nodes=-1",
    "--dump-logs-on-failure=false",
    f"--ginkgo.timeout={LIMIT:.0f}s",
    "--ginkgo.no-color",
    "--ginkgo.v",
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """One test that ran: its full name, ginkgo's state, and why it failed."""

    name: str
    state: str
    seconds: float
    message: str = ""

    @property
    def passed(self) -> bool:
        """Whether it passed."""
        return self.state == "passed"


def quickest() -> tuple[str, ...]:
    """The names of the quickest tests, for every change."""
    lines = _QUICKEST.read_text().splitlines()
    return tuple(line.split("  ", 1)[1] for line in lines if not line.startswith("#"))


def run(
    program: Path, kubeconfig: Path, folder: Path, names: Sequence[str] = ()
) -> tuple[Outcome, ...]:
    """Run both suites, or only the tests of these names; their log and report stay in the folder.

    A run that leaves no report raises AssertionError with the end of its log.
    """
    report, log = folder / "report.json", folder / "suite.log"
    report.unlink(missing_ok=True)
    focus = [re.escape(name) for name in names] or SUITES
    words = [str(program), *_FLAGS, f"--kubeconfig={kubeconfig}", f"--ginkgo.json-report={report}"]
    words += [f"--ginkgo.focus={pattern}" for pattern in focus]
    around = {**os.environ, "KUBECONFIG": str(kubeconfig)}
    with log.open("wb") as output:
        subprocess.run(  # noqa: S603 - our own words
            bound(words, "KILL"),
            cwd=folder,
            env=around,
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
            timeout=LIMIT + 60,
        )
    assert report.exists(), log.read_text(errors="replace")[-4000:]
    return read(report.read_text())


def told(outcomes: Sequence[Outcome]) -> str:
    """The result in a few words."""
    passed = sum(outcome.passed for outcome in outcomes)
    seconds = sum(outcome.seconds for outcome in outcomes)
    return f"{passed} of {len(outcomes)} in {seconds:.0f} s"


def listed(outcomes: Iterable[Outcome]) -> str:
    """The outcomes, a line each, and the messages of those that failed."""
    lines = []
    for outcome in outcomes:
        lines.append(f"{outcome.seconds:6.1f} s  {outcome.state:8}  {outcome.name}")
        lines += [f"          {line}" for line in outcome.message.splitlines()]
    return "\n".join(lines) + "\n"


def read(report: str) -> tuple[Outcome, ...]:
    """All tests that ran, and all failed steps before, between and after them."""
    specs = [spec for suite in json.loads(report) for spec in suite["SpecReports"] or ()]
    ran = [spec for spec in specs if spec["State"] not in {"skipped", "pending"}]
    found = (_outcome(spec) for spec in ran if _is_test(spec) or spec["State"] != "passed")
    return tuple(sorted(found, key=lambda outcome: outcome.seconds))


def _is_test(spec: Mapping[str, Any]) -> bool:
    return bool(spec["LeafNodeType"] == "It")


def _outcome(spec: Mapping[str, Any]) -> Outcome:
    parts = [*(spec["ContainerHierarchyTexts"] or ()), spec["LeafNodeText"]]
    name = " ".join(parts) if _is_test(spec) else spec["LeafNodeType"]
    message = (spec.get("Failure") or {}).get("Message", "")
    return Outcome(name, spec["State"], spec["RunTime"] / 1e9, message)
