"""How long a reservation may wait for its object: as long as other webhooks may be asked."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from sync.connect.permissions import CONFIGURATION
from sync.follow.ledger_changes import create_margin


def configuration(name: str, *timeouts: int | None) -> dict[str, Any]:
    webhooks = [{} if seconds is None else {"timeoutSeconds": seconds} for seconds in timeouts]
    return {"metadata": {"name": name}, "webhooks": webhooks}


@pytest.mark.parametrize(
    ("configurations", "seconds"),
    [
        ([], 10),
        ([configuration(CONFIGURATION, 30)], 10),
        ([configuration("other", 3)], 10),
        ([configuration("other", None)], 10),
        ([configuration("other", 3, 25), configuration("third", 12)], 25),
        ([{"metadata": {"name": "empty"}}], 10),
    ],
)
def test_slowest_other_webhook_decides(configurations: list[Any], seconds: int) -> None:
    assert create_margin(configurations) == dt.timedelta(seconds=seconds)
