"""`python -m bench ui`: what all pages cost over 5,000 policies and a million decisions.

Server time (median of 20, by Django's test client with all middleware), the number of queries over
the demo's data and over the grown ones, and what a browser fetches for a page.
"""

from __future__ import annotations

import gzip
import math
import re
import statistics
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from admission.models import AuditEvent, DayTally, Tally
from admission.record.search.day_tallies import tally_days
from bench import history, report, seed
from bench.growth import keep_sample, multiply, timed
from policies import services
from policies.models import Cluster, KeptTest, Rollout
from portal.dev.demo import begin_demo
from portal.dev.demo.people import begin_people
from portal.serving.application import settle
from sync.models import SyncedObject, SyncRun
from tests.browser.pages import PAGES, STATUSES
from tests.browser.people import idle_rule, proposed_change, replayed

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from django.contrib.auth.models import User
    from django.http import HttpResponse

PAGE_GOAL, EXPLORER_GOAL, WEIGHT_GOAL = 100.0, 300.0, 250.0  # milliseconds, the same, kB
PLAN_GOALS: Final = {"edit of policies": 2_500.0}
"""A plan validates each of up to 2,000 policies; it is asked for once, by a button."""
PAST_GOAL: Final = 300.0
PAST: Final = {
    "policies, of one name": "/policies/?at={then}&q=team-0",
    "policies, the last page": "/policies/?at={then}&page=100",
    "quotas": "/quotas/?at={then}",
    "clusters": "/clusters/?at={then}",
    "cluster": "/clusters/demo/?at={then}",
    "namespaces": "/clusters/demo/namespaces/?at={then}",
    "namespace": "/clusters/demo/namespaces/payments/?at={then}",
    "comparison of the fleet": "/compare/?from={then}",
    "comparison of a namespace": "/compare/?cluster=demo&namespace=payments&from={then}",
    "decision as of then": "/decisions/{denied}?as_of={then}",
    "API, limit ranges": "/api/v1/limitranges/?at={then}",
    "API, quotas": "/api/v1/resourcequotas/?at={then}",
    "API, namespaces": "/api/v1/namespaces/?at={then}",
    "API, usage": "/api/v1/quotausage/?at={then}",
    "API, comparison": "/api/v1/compare/?from={then}",
    "API, decision as of then": "/api/v1/decisions/{denied}/redecide/?at={then}",
}
"""Pages and answers as of an instant, which all of the journal is younger than."""
ADDRESSES: Final = {
    # Of one kind: over the grown database all policies are more than one plan may have.
    "edit of policies": (
        "/policies/edit/?act=mode:audit&all=1&asked=cluster%3Ddemo%26kind%3DLimitRange"
    ),
}
COUNTING: Final = ("explorer", "decisions", "refusals", "decision, ")
"""Pages that count decisions."""
RUNS, QUICK_RUNS = 20, 5
NAMESPACES, ROWS = 1_000, 1_000_000
QUICK_NAMESPACES, QUICK_ROWS, SMALL_ROWS = 100, 100_000, 30_000
TALLIED: Final = 4  # further questions to the tallies, where more fit than are counted
EXPLORER: Final = {
    "all": "",
    "cluster": "cluster=demo",
    "namespace": "namespace=payments",
    "kind": "kind=Pod",
    "user": "user=system:serviceaccount:kube-system:replicaset-controller",
    "a rare user": "user=nobody",
    "verdict": "verdict=denied",
    "reason": "reason=MinConstraint",
    "policy": "policy=LimitRange/payments/limits",
    "dry run": "dry_run=true",
    "name": "name=ledger",
    "nothing fits": "cluster=demo&namespace=nowhere",
    "a cluster's refusals": "cluster=demo&verdict=denied&reason=ExceededQuota",
}
_ASSET: Final = re.compile(
    r'<(?:script[^>]*\ssrc|link[^>]*\shref|img[^>]*\ssrc|use[^>]*\shref)="(/static/[^"#]+)'
)
_FONT: Final = re.compile(r'url\("?([^")]+\.woff2)"?\)')


@dataclass(slots=True)
class Line:
    """One page and what it cost."""

    name: str
    path: str
    goal: float
    status: int = 0
    milliseconds: float = 0.0
    queries_small: int = 0
    queries: int = 0
    kilobytes: float = 0.0

    @property
    def verdict(self) -> str:
        """PASS, or the goals that were missed; a page that is not there has none."""
        if self.status != STATUSES.get(self.name, 200):
            return f"answers {self.status}"
        further = TALLIED if self.name.startswith(COUNTING) else 0
        missed = []
        if self.milliseconds > self.goal:
            missed.append(f"{self.milliseconds:.0f} ms")
        if self.queries > self.queries_small + further:
            missed.append(f"queries grow from {self.queries_small} to {self.queries}")
        if self.kilobytes > WEIGHT_GOAL:
            missed.append(f"{self.kilobytes:.0f} kB")
        return f"FAIL {', '.join(missed)}" if missed else "PASS"

    def visit(self, client: Client, runs: int) -> None:
        """Get the page as a browser does; count its queries, measure its time and its weight."""
        get = partial(client.get, self.path, secure=True, headers={"accept-encoding": "gzip"})
        get()  # what is remembered from page to page is remembered
        with CaptureQueriesContext(connection) as asked:
            page = get()
        self.status, self.queries = page.status_code, len(asked)
        self.milliseconds = statistics.median(timed(get) for _ in range(runs))
        self.kilobytes = weight(page, Path(settings.STATIC_ROOT)) / 1000


def measure(is_quick: bool) -> int:  # noqa: FBT001 - the one word of its command
    """Fill the database, visit, print. 0: every goal is met; 2: one was missed."""
    settings.STATIC_ROOT = Path(settings.GATEHOUSE_VAR) / "static"
    call_command("collectstatic", interactive=False, verbosity=0)
    client = Client(SERVER_NAME="127.0.0.1", raise_request_exception=False)
    admin = get_user_model().objects.create_superuser("bench")
    client.force_login(admin)
    settle()
    lines = _lines(_fill(admin))
    for line in lines:
        line.visit(client, 1)
        line.queries_small = line.queries
    policies = _grow(is_quick, since=timezone.now())
    for line in lines:
        line.visit(client, QUICK_RUNS if is_quick else RUNS)
    decisions = AuditEvent.objects.count()
    print(f"{policies:,} policies more than the demo's, {decisions:,} decisions\n")
    table = [["page", "ms", "goal", "queries", "kB", ""]]
    for line in lines:
        queries = f"{line.queries_small} → {line.queries}"
        numbers = f"{line.milliseconds:.1f}", f"{line.goal:.0f}", queries, f"{line.kilobytes:.0f}"
        table.append([line.name, *numbers, line.verdict])
    print(report.table(table))
    print(f"\ngoals: < {PAGE_GOAL:.0f} ms a page, < {EXPLORER_GOAL:.0f} ms a filter of decisions,")
    print(f"no query more over the larger database ({TALLIED} where more fit than are counted:")
    print(f"of tallies), < {WEIGHT_GOAL:.0f} kB with all that is loaded")
    pages = [{**asdict(line), "verdict": line.verdict} for line in lines]
    report.save({"policies": policies, "decisions": decisions, "pages": pages}, name="ui")
    return 2 if any(line.verdict != "PASS" for line in lines) else 0


def _fill(admin: User) -> dict[str, str]:
    """Begin the demo with its people; gives what fills in the addresses of pages."""
    begin_demo()
    begin_people()
    services.create_service_account(name="ci", description="pipelines", author=admin)
    keep_sample()
    multiply(SMALL_ROWS)  # so that what is found fills more than a page
    rows = AuditEvent.objects.filter(cluster="demo", namespace="payments")
    ids = {each: rows.filter(verdict=each).newest(1)[0].id for each in ("denied", "mutated")}
    ids["run"] = str(SyncRun.objects.filter(cluster__name="demo-connected")[0].uid)
    objects = SyncedObject.objects.filter(state__in=("drifted", "conflict"))
    ids |= {"replay": replayed(admin.username), "change": str(proposed_change(admin.username))}
    ids |= {
        "rolled": str(Rollout.objects.get().change_id),
        "rule": str(idle_rule(admin.username)),
    }
    ids["kept"] = str(KeptTest.objects.get(name="large-pods-run").pk)
    ids["then"] = f"{timezone.now():%Y-%m-%dT%H:%M:%SZ}"
    return ids | {each.state: str(each.pk) for each in objects}


def _lines(ids: Mapping[str, str]) -> list[Line]:
    goals = dict.fromkeys(PAGES, PAGE_GOAL) | PLAN_GOALS
    pages = PAGES | ADDRESSES
    lines = [Line(name, path.format(**ids), goals[name]) for name, path in pages.items()]
    lines += [
        Line(f"the past: {name}", path.format(**ids), PAST_GOAL) for name, path in PAST.items()
    ]
    lines.append(Line("palette, a name", "/find/?q=pay", PAGE_GOAL))
    lines += [
        Line(f"explorer: {name}", f"/decisions/?{query}", EXPLORER_GOAL)
        for name, query in EXPLORER.items()
    ]
    return lines


def _grow(is_quick: bool, *, since: datetime) -> int:  # noqa: FBT001 - the same
    """Make many policies and decisions more of the demo's; gives how many policies.

    Policies have a history from before an instant, and all of the journal is younger than it.
    """
    namespaces = [f"team-{n:03d}" for n in range(QUICK_NAMESPACES if is_quick else NAMESPACES)]
    cluster = Cluster.objects.get(name="demo")
    seed.fill(cluster, namespaces, metadata_policies=("mp", "mp2", "mp3"))
    history.write_history(cluster, namespaces)
    multiply(QUICK_ROWS if is_quick else ROWS)
    history.write_journal(cluster, namespaces, since=since)
    Tally.objects.all().delete()
    DayTally.objects.all().delete()
    Tally.objects.bring_up_to_date(now=timezone.now(), until=math.inf)
    tally_days(now=timezone.now(), until=math.inf)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
    return 5 * len(namespaces)


def weight(page: HttpResponse, root: Path) -> int:
    """Bytes of the page, its style, scripts, icons and fonts, as they are sent."""
    is_compressed = page.headers.get("Content-Encoding") == "gzip"
    text = (gzip.decompress(page.content) if is_compressed else page.content).decode()
    addresses = (urlsplit(address).path for address in _ASSET.findall(text))
    files = {root / address.removeprefix("/static/") for address in addresses}
    for style in [path for path in files if path.suffix == ".css"]:
        fonts = _FONT.findall(style.read_text("utf-8"))
        files |= {(style.parent / font).resolve() for font in fonts}
    compressed = {path: path.with_name(f"{path.name}.gz") for path in files}
    sent = (gz if gz.exists() else path for path, gz in compressed.items())
    return len(page.content) + sum(path.stat().st_size for path in sent)
