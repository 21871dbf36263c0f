"""Control planes for tests; without binaries the tests are skipped with a visible message."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cluster.binaries import Binaries, find, folders, missing
from tests.cluster.servers import Cluster, Options, cluster

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def binaries() -> Binaries:
    """The API server and its companion programs."""
    found = find()
    if found is None:
        places = " nor in ".join(map(str, folders()))
        pytest.skip(
            f"NO API SERVER HERE: {', '.join(missing())} neither in {places}; "
            "python -m tests.cluster.build makes them where there is Go"
        )
    return found


@pytest.fixture(scope="session")
def plain_cluster(binaries: Binaries) -> Iterator[Cluster]:
    """A default control plane: its own plugins on, no webhooks; shared, so keep changes local."""
    with cluster(binaries) as made:
        yield made


@pytest.fixture(scope="session")
def bare_cluster(binaries: Binaries) -> Iterator[Cluster]:
    """A control plane whose LimitRanger and ResourceQuota are off."""
    with cluster(binaries, Options(plugins=False)) as made:
        yield made
