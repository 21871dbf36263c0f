"""What `bench.ui` looks at: namespaces with policies, and decisions made by the database itself."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, Final

from bench.growth_rows import ALPHABET, DETAIL, id_sql

CLUSTERS: Final = ("shop-0", "shop-1", "shop-2", "shop-3")
DAYS: Final = 30
REASONS: Final = (
    "ExceededQuota",
    "MaxConstraint",
    "RejectedByRule",
    "MinConstraint",
    "UncoveredScope",
)
_REQUEST: Final = json.dumps(
    {
        "object": {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "labels": {"app": "web", "team": "shop"}},
            "spec": {
                "containers": [
                    {
                        "name": "web",
                        "image": "web:1",
                        "resources": {"requests": {"cpu": "250m", "memory": "256Mi"}},
                    }
                ]
            },
        }
    }
)
_POLICY: Final = {"kind": "LimitRange", "namespace": "team-000", "name": "lr", "revision": 1}
_VIOLATIONS: Final = json.dumps(
    [
        {
            "reason": "MaxConstraint",
            "field": "spec.containers[0]",
            "message": "maximum cpu usage per Container is 4, but limit is 5",
            "policy": _POLICY,
            "rule": 0,
            "numbers": {"enforced": "4", "limit": "5"},
        }
    ]
)


def namespaces(number: int) -> list[str]:
    """Names of so many namespaces in each cluster."""
    return [f"team-{each:03d}" for each in range(number)]


def rows_sql(table: str) -> str:
    """Uneven, as they are; one row in ten is a denial, of one of five reasons."""
    listed = ", ".join(f"'{reason}'" for reason in REASONS)
    return f"""
    INSERT INTO {table} (
      id, created, duration_us, cluster, phase, request_uid, operation, api_group, kind, resource,
      sub_resource, namespace, name, object_uid, "user", groups, dry_run, client, verdict, code,
      reason, message, reasons, policy_revision, policies, policy_names, violations, observed,
      trace, patch, warnings, charges, request)
    SELECT {id_sql()}, timestamptz 'epoch' + ms * interval '1 millisecond',
      (1000 + 4000 * n)::int, 'shop-' || floor({len(CLUSTERS)} * c * c)::int,
      CASE WHEN i %% 2 = 0 THEN 'mutate' ELSE 'validate' END, uid, 'CREATE', '', 'Pod', 'pods',
      '', team, 'app-' || floor(500 * n)::int || '-' || substr(uid, 1, 5), uid,
      'user-' || floor(300 * u * u)::int, '["system:authenticated"]', i %% 50 = 0, '10.0.0.2',
      CASE WHEN is_denied THEN 'denied' WHEN i %% 10 = 1 THEN 'mutated' ELSE 'allowed' END,
      CASE WHEN is_denied THEN 403 ELSE 200 END,
      CASE WHEN is_denied THEN 'Forbidden' ELSE '' END,
      CASE WHEN is_denied THEN 'pods "app" is forbidden: maximum cpu usage' ELSE '' END,
      CASE WHEN is_denied THEN ' ' || (ARRAY[{listed}])[1 + (i %% {len(REASONS)})] || ' '
        ELSE '' END,
      1, '[]', ' LimitRange/' || team || '/lr MetadataPolicy/' || team || '/mp ResourceQuota/'
        || team || '/rq ',
      CASE WHEN is_denied THEN '{_VIOLATIONS}' ELSE '[]' END::jsonb, '[]', '{DETAIL}'::jsonb,
      '[]', '[]', '[]', '{_REQUEST}'::jsonb
    FROM (
      SELECT *, 'team-' || lpad(floor(%s * n * n)::text, 3, '0') AS team, i %% 10 = 0 AS is_denied
      FROM (
        SELECT i, '{ALPHABET}'::text AS a, floor(%s * (i - 1))::bigint + %s AS ms,
          floor(random() * 4294967296)::bigint AS noise, gen_random_uuid()::text AS uid,
          random() AS c, random() AS n, random() AS u
        FROM generate_series(1, %s) AS i
      ) AS drawn
    ) AS made"""  # noqa: S608  our own words


def fill_policies(number: int) -> None:
    """So many namespaces in each cluster that it has not yet, with five policies each."""
    from bench import seed  # noqa: PLC0415  after setup
    from policies import services  # noqa: PLC0415  after setup
    from policies.models import Cluster, Namespace, PriorityClass  # noqa: PLC0415  after setup

    for name in CLUSTERS:
        cluster = Cluster.objects.filter(name=name).first()
        if cluster is None:
            cluster = services.save_cluster(cluster=Cluster(name=name), user="bench").instance
            high = PriorityClass(cluster=cluster, name=seed.review.PRIORITY, value=100_000)
            services.save_priority_class(priority_class=high, user="bench")
        known = set(Namespace.objects.filter(cluster=cluster).values_list("name", flat=True))
        wanted = [each for each in namespaces(number) if each not in known]
        seed.fill(cluster, wanted, metadata_policies=("mp", "mp2", "mp3"))


def fill_record(rows: int, teams: int) -> None:
    """A record of so many rows over 30 days in place of the one there is, and its tallies."""
    from django.db import connection, transaction  # noqa: PLC0415  after setup

    from admission.models import partitions  # noqa: PLC0415  after setup

    now = datetime.now(UTC)
    today = now.date()
    for back in range(DAYS - 1, -1, -1):
        day = today - timedelta(days=back)
        begin, end = partitions.bounds(day)
        length = (min(end, now) - begin).total_seconds() * 1000
        each = max(1, round(rows / DAYS))
        with transaction.atomic(), connection.cursor() as cursor:
            table = partitions.name(day)
            if day in partitions.days():
                partitions.drop(day)
            partitions.create_detached(cursor, table)
            first = int(begin.timestamp() * 1000)
            cursor.execute(rows_sql(table), [teams, length / each, first, each])
            partitions.attach(cursor, table, day)
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM admission_tally")
        cursor.execute(_TALLY)
        cursor.execute("VACUUM ANALYZE")


_TALLY: Final = """
INSERT INTO admission_tally (cluster, start, allowed, mutated, denied, dry_run)
SELECT cluster, date_bin('10 minutes', created, 'epoch') AS start,
  count(*) FILTER (WHERE verdict = 'allowed'), count(*) FILTER (WHERE verdict = 'mutated'),
  count(*) FILTER (WHERE verdict = 'denied'), count(*) FILTER (WHERE dry_run)
FROM admission_auditevent GROUP BY 1, 2"""


def decide_some() -> dict[str, str]:
    """Real decisions of the engine, for the pages of one decision; gives their ids by verdict."""
    from admission.record import backdate  # noqa: PLC0415  after setup
    from engine.request import Phase  # noqa: PLC0415  after setup
    from policies import snapshot  # noqa: PLC0415  after setup
    from portal.dev.demo.workloads import Workload, requirements  # noqa: PLC0415  after setup

    made, rows, found = Random(1), [], {}  # noqa: S311  no secrets
    policies = snapshot.load(CLUSTERS[0], "team-000")
    asked: dict[str, Any] = {
        "denied": requirements("5", "9Gi", cpu_limit="6", memory_limit="9Gi"),
        "mutated": requirements(),
    }
    for verdict, resources in asked.items():
        workload = Workload(
            cluster=CLUSTERS[0],
            namespace="team-000",
            name="web",
            resources=resources,
            labels={"team": "shop", "tier": "web"},
        )
        _, row = backdate.decide(
            backdate.PastCall(
                request=workload.request(workload.pod(made), made),
                phase=Phase.MUTATE if verdict == "mutated" else Phase.VALIDATE,
                moment=datetime.now(UTC) - timedelta(minutes=1),
                microseconds=2000,
                client="10.0.0.2",
                random=made.getrandbits(32),
                revision=1,
            ),
            policies,
            {},
        )
        assert row["verdict"] == verdict, row["message"]  # noqa: S101  a page of another kind
        rows.append(row)
        found[verdict] = str(row["id"])
    backdate.keep(rows)
    return found
