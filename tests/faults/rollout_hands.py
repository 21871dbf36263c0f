"""Begins roll-outs and looks for what is half-done, in a process of its own, a line per command.

``python -m …rollout_hands`` answers each line of its input with a line of JSON: ``token``,
``begin N``, ``state ID`` and ``faults ID``. It outlives the database that it asks.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any


def main() -> None:
    """Answer commands until there are no more."""
    import django  # noqa: PLC0415 - the environment says where the database is

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    django.setup()
    from django.db import connections  # noqa: PLC0415

    connection: Any = connections["default"]
    for line in sys.stdin:
        verb, _, number = line.strip().partition(" ")
        # The server may have been killed since: nothing of it is kept.
        connection.close()
        connection.close_pool()
        sys.stdout.write(json.dumps(_answer(verb, int(number or 0))) + "\n")
        sys.stdout.flush()


def _answer(verb: str, number: int) -> Any:
    from tests.faults import kill_rollouts  # noqa: PLC0415

    match verb:
        case "token":
            return _token()
        case "begin":
            return kill_rollouts.begin(number)
        case "state":
            return _state(number)
        case "faults":
            return kill_rollouts.faults_of(number)
    raise ValueError(verb)


def _token() -> str:
    """The secret of an admin's token."""
    from django.contrib.auth import get_user_model  # noqa: PLC0415

    from policies.models import ApiToken  # noqa: PLC0415
    from policies.services.tokens import TokenRequest, issue_token  # noqa: PLC0415

    users: Any = get_user_model().objects
    admin = users.create_superuser("admin", password="only-in-tests")
    request = TokenRequest(name="kills", access=ApiToken.Access.WRITE)
    return issue_token(owner=admin, author=admin, request=request)[1]


def _state(pk: int) -> dict[str, Any]:
    """Where a roll-out stands."""
    from policies.models import Rollout  # noqa: PLC0415

    row = Rollout.objects.select_related("change").get(pk=pk)
    return {"at": row.at, "total": row.total, "state": row.change.state, "change": row.change_id}


if __name__ == "__main__":
    main()
