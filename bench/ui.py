"""`python -m bench.ui`: what pages cost over 5,000 policies and a million decisions.

Server time of each page (median of 20, by Django's test client, all middleware included), the
number of its queries over a small and a large database, and what a browser would fetch for it.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bench import database
from bench.places import RESULTS, MissingError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.test import Client

PAGE_GOAL, EXPLORER_GOAL, WEIGHT_GOAL = 100.0, 300.0, 300.0  # milliseconds, the same, kB
RUNS, QUICK_RUNS = 20, 5
TALLIED: Final = 4
"""Where more fit than are counted, the plot asks the tallies so many further questions."""
SMALL: Final = (5, 3_000)  # namespaces in each cluster, decisions
LARGE: Final = (250, 1_000_000)
QUICK: Final = (25, 30_000)
PLACE: Final = "/clusters/shop-0"
PAGES: Final = {
    "home": "/",
    "home, 14 days": "/?window=fortnight",
    "clusters": "/clusters/",
    "cluster": f"{PLACE}/",
    "objects": f"{PLACE}/objects/",
    "runs": f"{PLACE}/runs/",
    "authority": f"{PLACE}/authority/",
    "connect": "/clusters/-/connect/",
    "namespaces": f"{PLACE}/namespaces/",
    "namespace": f"{PLACE}/namespaces/team-000/",
    "quota board": "/quotas/",
    "quota story": "/quotas/shop-0/team-000/",
    "people": "/people/",
    "changes": "/clusters/-/changes/",
    "policies": f"{PLACE}/policies/",
    "import": f"{PLACE}/import/",
    "new limit range": f"{PLACE}/namespaces/team-000/limitranges/new",
    "revisions": f"{PLACE}/namespaces/team-000/limitranges/lr/revisions/",
    "limit range": f"{PLACE}/namespaces/team-000/limitranges/lr/",
    "metadata policy": f"{PLACE}/namespaces/team-000/metadatapolicies/mp/",
    "resource quota": f"{PLACE}/namespaces/team-000/resourcequotas/rq/",
    "decision, denied": "/decisions/{denied}",
    "decision, mutated": "/decisions/{mutated}",
    "palette, a name": "/find/?q=team-01",
}
EXPLORER: Final = {
    "all": "",
    "cluster": "cluster=shop-1",
    "namespace": "namespace=team-001",
    "kind": "kind=Pod",
    "user": "user=user-1",
    "a rare user": "user=user-299",
    "verdict": "verdict=denied",
    "reason": "reason=MinConstraint",
    "policy": "policy=LimitRange/team-002/lr",
    "dry run": "dry_run=true",
    "name": "name=app-17",
    "nothing fits": "cluster=shop-1&namespace=nowhere",
    "a cluster's refusals": "cluster=shop-2&verdict=denied&reason=ExceededQuota",
}


@dataclass(slots=True)
class Line:
    """One page and what it cost; ``kilobytes`` is None for what is a part of a page."""

    name: str
    path: str
    goal: float
    status: int = 0
    milliseconds: float = 0.0
    queries_small: int = 0
    queries: int = 0
    kilobytes: float | None = None

    @property
    def faults(self) -> list[str]:
        """Which goals were missed."""
        found = []
        if self.milliseconds > self.goal:
            found.append(f"{self.milliseconds:.0f} ms")
        further = TALLIED if self.goal == EXPLORER_GOAL else 0
        if self.queries > self.queries_small + further:
            found.append(f"queries grow from {self.queries_small} to {self.queries}")
        if (self.kilobytes or 0) > WEIGHT_GOAL:
            found.append(f"{self.kilobytes:.0f} kB")
        return found

    @property
    def verdict(self) -> str:
        """PASS or FAIL; a page that is not there has none."""
        if self.status != 200:  # noqa: PLR2004  the one good answer
            return f"answers {self.status}"
        return "FAIL" if self.faults else "PASS"


def main(words: Sequence[str] | None = None) -> int:
    """Fill, query, print. 0: every goal is met; 1: it could not run; 2: a goal was missed."""
    parser = argparse.ArgumentParser(prog="python -m bench.ui", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="over 30,000 decisions")
    options = parser.parse_args(words)
    try:
        with tempfile.TemporaryDirectory(prefix="gatehouse-bench-ui-") as name:
            folder = Path(name)
            with database.postgresql(folder / "server") as server:
                _settle(server.address("postgres"), folder)
                return _run(folder, quick=options.quick)
    except MissingError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1


def _settle(address: str, folder: Path) -> None:
    os.environ |= {
        "DJANGO_SETTINGS_MODULE": "portal.settings",
        "GATEHOUSE_DATABASE_URL": address,
        "GATEHOUSE_VAR": str(folder / "var"),
        "GATEHOUSE_ENV_FILE": os.devnull,
        "GATEHOUSE_EXTERNAL_URL": "http://127.0.0.1:8000",
        "GATEHOUSE_LOG_LEVEL": "ERROR",
    }


def _run(folder: Path, *, quick: bool) -> int:
    import django  # noqa: PLC0415  settings are read from the environment made above

    django.setup()
    from bench import ui_rows  # noqa: PLC0415  after setup

    client = _client(folder)
    lines = [Line(name, path, PAGE_GOAL) for name, path in PAGES.items()]
    lines += [
        Line(f"explorer: {name}", f"/decisions/?{query}", EXPLORER_GOAL)
        for name, query in EXPLORER.items()
    ]
    began = time.perf_counter()
    for size in (SMALL, QUICK if quick else LARGE):
        namespaces, rows = size
        ui_rows.fill_policies(namespaces)
        ui_rows.fill_record(rows, namespaces)
        ids = ui_rows.decide_some()
        for line in lines:
            _count(client, line, ids, is_small=size is SMALL)
    grown = time.perf_counter() - began
    for line in lines:
        _time(client, line, ids, runs=QUICK_RUNS if quick else RUNS)
        _weigh(client, line, ids, folder)
    return _tell(lines, size, grown)


def _client(folder: Path) -> Client:
    """Somebody who sees everything, and the files that pages load."""
    from django.conf import settings  # noqa: PLC0415  after setup
    from django.contrib.auth import get_user_model  # noqa: PLC0415  after setup
    from django.core.management import call_command  # noqa: PLC0415  after setup
    from django.test import Client  # noqa: PLC0415  after setup

    settings.STATIC_ROOT = folder / "static"
    call_command("migrate", interactive=False, verbosity=0)
    call_command("collectstatic", interactive=False, verbosity=0)
    client = Client(SERVER_NAME="127.0.0.1", raise_request_exception=False)
    client.force_login(get_user_model().objects.create_superuser("bench"))
    return client


def _get(client: Client, line: Line, ids: dict[str, str]) -> Any:
    return client.get(line.path.format(**ids), headers={"accept-encoding": "gzip"})


def _count(client: Client, line: Line, ids: dict[str, str], *, is_small: bool) -> None:
    from django.db import connection  # noqa: PLC0415  after setup
    from django.test.utils import CaptureQueriesContext  # noqa: PLC0415  after setup

    _get(client, line, ids)  # what is remembered from page to page is remembered
    with CaptureQueriesContext(connection) as asked:
        line.status = _get(client, line, ids).status_code
    if is_small:
        line.queries_small = len(asked)
    line.queries = len(asked)


def _time(client: Client, line: Line, ids: dict[str, str], *, runs: int) -> None:
    times = []
    for _ in range(runs):
        begin = time.perf_counter()
        _get(client, line, ids)
        times.append((time.perf_counter() - begin) * 1000)
    line.milliseconds = statistics.median(times)


def _weigh(client: Client, line: Line, ids: dict[str, str], folder: Path) -> None:
    from bench.ui_weight import weight  # noqa: PLC0415  beside this

    if not line.name.startswith("palette"):
        line.kilobytes = weight(_get(client, line, ids).content, folder / "static") / 1000


def _tell(lines: list[Line], size: tuple[int, int], grown: float) -> int:
    namespaces, rows = size
    where = f"{4 * namespaces:,} namespaces, {20 * namespaces:,} policies, {rows:,} decisions"
    print(f"{where}; made in {grown:.0f} s\n")
    print(f"{'page':<34}{'ms':>8}{'goal':>6}{'queries':>12}{'kB':>7}")
    for line in lines:
        queries = f"{line.queries_small} → {line.queries}"
        weight = "" if line.kilobytes is None else f"{line.kilobytes:.0f}"
        figures = f"{line.milliseconds:>8.1f}{line.goal:>6.0f}{queries:>12}{weight:>7}"
        print(f"{line.name:<34}{figures}  {line.verdict} {', '.join(line.faults)}")
    print(f"\ngoals: < {PAGE_GOAL:.0f} ms a page, < {EXPLORER_GOAL:.0f} ms a filter of decisions,")
    print(f"no query more over the larger database ({TALLIED} where more fit than are counted:")
    print(f"the plot's, of tallies), < {WEIGHT_GOAL:.0f} kB with all that is loaded")
    RESULTS.mkdir(parents=True, exist_ok=True)
    found = {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "namespaces": 4 * namespaces,
        "policies": 20 * namespaces,
        "decisions": rows,
        "pages": [{**asdict(line), "verdict": line.verdict} for line in lines],
    }
    text = json.dumps(found, indent=1) + "\n"
    moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    for name in (f"{moment}-ui.json", "latest-ui.json"):
        (RESULTS / name).write_text(text, encoding="utf-8")
    return 2 if any(line.verdict != "PASS" for line in lines) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
