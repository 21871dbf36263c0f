"""Kill the process of a roll-out at many statements; run alone: ``python -m …kill_rollouts 50``.

Prints as JSON how many were killed, how many roll-outs ended, and everything half-done found after
any kill. Each move is a forked process that kills itself before one of its statements, and then
another one that is let go on.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
from typing import Any, Final

NAMESPACES: Final = ("hot", "five", "roomy")
STAGES: Final = ("audit", "warn", "enforce")
LATEST: Final = 60
"""The last statement before which a process is killed; a move has about so many."""


def main(kills: int) -> None:
    """Roll changes out until so many processes were killed."""
    import django  # noqa: PLC0415 - the environment says where the database is

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    django.setup()
    chance, faults, ends, killed = random.Random(kills), [], 0, 0  # noqa: S311 - no secret
    while killed < kills:
        pk = begin(ends)
        while _is_running(pk):
            killed += _move(pk, before=chance.randint(1, LATEST))
            faults += faults_of(pk)
            _move(pk)
            faults += faults_of(pk)
        ends += 1
    sys.stdout.write(json.dumps({"killed": killed, "ends": ends, "faults": faults}))


def begin(number: int) -> int:
    """A roll-out of two new policies a wave that has begun; its stages are over at once."""
    from policies.change_sets.rollout.plan import read_plan  # noqa: PLC0415
    from policies.models import Cluster, Rollout  # noqa: PLC0415
    from policies.services import changes  # noqa: PLC0415
    from policies.services.changes import rollout  # noqa: PLC0415

    cluster = Cluster.objects.get(name="prod")
    change = changes.create_change(title=f"Roll-out {number}", user="ada")
    wanted = [
        _policy(namespace, f"killed-{number}-{each}")
        for namespace in NAMESPACES
        for each in ("a", "b")
    ]
    changes.put(change, proposals=[changes.propose(cluster, each) for each in wanted], user="ada")
    stages = [{"mode": mode} for mode in STAGES]
    waves = [{"namespaces": [namespace], "stages": stages} for namespace in NAMESPACES]
    rollout.put_plan(change, plan=read_plan({"waves": waves}), user="ada")
    rollout.start(changes.submit(change, user="ada"), user="bob")
    return int(Rollout.objects.get(change=change).pk)


def _policy(namespace: str, name: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace}
    spec = {"rules": [{"policyAction": {"reject": True}}]}
    return {"kind": "MetadataPolicy", "apiVersion": "v1", "metadata": metadata, "spec": spec}


def _is_running(pk: int) -> bool:
    from policies.models import Rollout  # noqa: PLC0415

    return bool(Rollout.objects.filter(pk=pk, change__state="rolling_out").exists())


def _move(pk: int, *, before: int = 0) -> bool:
    """Go on in a process of its own; whether it was killed before its statement of that number."""
    from django.db import connections  # noqa: PLC0415

    from admission.rollout.work import go_on  # noqa: PLC0415

    connection: Any = connections["default"]
    # A forked process must share no connection with this one, not even one that waits in a pool.
    connection.close()
    connection.close_pool()
    child = os.fork()
    if child:
        return os.WIFSIGNALED(os.waitpid(child, 0)[1])
    left = before

    def count(execute: Any, *words: Any) -> Any:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return execute(*words)

    with connection.execute_wrapper(count):
        go_on(pk)
    os._exit(0)


def faults_of(pk: int) -> list[str]:
    """Everything that is not as the stages on record say, all as it was at one moment."""
    from django.db import connection, transaction  # noqa: PLC0415

    with transaction.atomic():
        # Others take stages meanwhile: each statement would see another moment.
        connection.cursor().execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        return _faults_of(pk)


def _faults_of(pk: int) -> list[str]:
    from policies.models import MetadataPolicy, PolicyRevision, Rollout  # noqa: PLC0415

    row = Rollout.objects.select_related("change").get(pk=pk)
    stages = list(row.stages.values_list("number", "wave", "mode"))
    found = []
    if [each[0] for each in stages] != list(range(1, row.at + 1)):
        found.append(f"stages {stages} at {row.at}")
    finishes = row.change.steps.filter(step="finish").count()
    if finishes != (row.change.state == "done"):
        found.append(f"{finishes} ends, {row.change.state}")
    for item in row.change.items.all():
        modes = [mode for _, wave, mode in stages if wave == item.wave]
        stored = MetadataPolicy.objects.filter(namespace__name=item.namespace, name=item.name)
        now = list(stored.values_list("enforcement", flat=True))
        written = PolicyRevision.objects.filter(namespace=item.namespace, name=item.name).count()
        if now != modes[-1:] or written != len(modes):
            found.append(f"{item}: {now} in {written} writes after {modes}")
    return found


if __name__ == "__main__":
    main(int(sys.argv[1]))
