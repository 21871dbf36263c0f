"""The rows that `bench.growth` makes: by the database itself, or as the product would."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from random import Random

ALPHABET: Final = "0123456789abcdefghjkmnpqrstvwxyz"
DETAIL: Final = json.dumps(
    [
        {
            "name": "LimitRangeCheck",
            "outcome": "passed",
            "policy": {"kind": "LimitRange", "namespace": "team", "name": "limits", "revision": 3},
            "numbers": {"limit": "500m", "request": "250m", "enforced": "1"},
        }
    ]
    * 3
)
REQUEST: Final = json.dumps(
    {"object": {"kind": "Pod", "metadata": {"labels": {"app": "web"}}, "spec": {"containers": []}}}
)


def id_sql() -> str:
    """A decision id of ``ms`` and ``noise`` (32 bits), where ``a`` is the alphabet."""
    high = [f"substr(a, ((ms >> {43 - 5 * n}) & 31)::int + 1, 1)" for n in range(9)]
    low = [f"substr(a, ((noise >> {25 - 5 * n}) & 31)::int + 1, 1)" for n in range(6)]
    middle = "substr(a, ((ms & 7) * 4 + (noise >> 30))::int + 1, 1)"
    return " || ".join([*high, middle, *low])


def rows_sql(table: str) -> str:
    """Clusters, namespaces and users are uneven, as they are; one row in twenty is a denial."""
    decision_id = id_sql()
    return f"""
    INSERT INTO {table} (
      id, created, duration_us, cluster, phase, request_uid, operation, api_group, kind, resource,
      sub_resource, namespace, name, object_uid, "user", groups, dry_run, client, verdict, code,
      reason, message, reasons, policy_revision, policies, policy_names, violations, observed,
      trace, patch, warnings, charges, request)
    SELECT {decision_id}, timestamptz 'epoch' + ms * interval '1 millisecond', 1500,
      'cluster-' || floor(100 * c * c)::int, 'validate', uid, 'CREATE', '', 'Pod', 'pods', '',
      'team-' || floor(2000 * n * n)::int,
      'app-' || floor(5000 * n)::int || '-' || substr(uid, 1, 5), uid,
      'user-' || floor(3000 * u * u)::int, '["system:authenticated"]', i %% 50 = 0, '127.0.0.1',
      CASE WHEN i %% 20 = 0 THEN 'denied' WHEN i %% 10 = 1 THEN 'mutated' ELSE 'allowed' END,
      200, '', '', '', 1, '[]', '', '[]', '[]', '{DETAIL}'::jsonb, '[]', '[]', '[]',
      '{REQUEST}'::jsonb
    FROM (
      SELECT i, '{ALPHABET}'::text AS a, floor(%s * (i - 1))::bigint + %s AS ms,
        floor(random() * 4294967296)::bigint AS noise, gen_random_uuid()::text AS uid,
        random() AS c, random() AS n, random() AS u
      FROM generate_series(1, %s) AS i
    ) AS made"""  # noqa: S608  our own words


def row(milliseconds: int, made: Random, number: int) -> dict[str, Any]:
    """A row as ``audit.row`` makes it."""
    from admission.models import decision_id  # noqa: PLC0415  after setup

    chosen = decision_id.encode(milliseconds, made.getrandbits(32))
    uid = f"{made.getrandbits(128):032x}"
    texts = ("api_group", "sub_resource", "reason", "message", "reasons", "policy_names")
    lists = ("policies", "violations", "observed", "patch", "warnings", "charges")
    return {
        **dict.fromkeys(texts, ""),
        **{name: [] for name in lists},
        **dict.fromkeys(("more_violations", "more_observed"), 0),
        "id": chosen,
        "created": decision_id.moment(chosen),
        "duration_us": 1500,
        "cluster": f"cluster-{int(100 * made.random() ** 2)}",
        "phase": "validate",
        "request_uid": uid,
        "operation": "CREATE",
        "kind": "Pod",
        "resource": "pods",
        "namespace": f"team-{int(2000 * made.random() ** 2)}",
        "name": f"app-{int(5000 * made.random())}-{uid[:5]}",
        "object_uid": uid,
        "user": f"user-{int(3000 * made.random() ** 2)}",
        "groups": ["system:authenticated"],
        "dry_run": number % 50 == 0,
        "client": "127.0.0.1",
        "verdict": "allowed" if number % 20 else "denied",
        "code": 200,
        "policy_revision": 1,
        "trace": json.loads(DETAIL),
        "request": json.loads(REQUEST),
    }
