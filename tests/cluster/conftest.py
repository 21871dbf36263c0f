"""Control planes for tests; without binaries the tests are skipped with a visible message."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from tests.cluster.binaries import Binaries, find, folders, missing
from tests.cluster.servers import Cluster, Options, cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

_HERE: Final = Path(__file__).parent
_SHARES: Final = 5


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


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep a file on one worker, which shares its control plane; histories may be spread."""
    for item in items:
        if item.path.parent == _HERE:
            item.add_marker(pytest.mark.xdist_group(f"{item.path.stem} {_share(item)}"))


def _share(item: pytest.Item) -> int:
    call = getattr(item, "callspec", None)
    seed = call.params.get("seed") if call is not None else None
    return seed % _SHARES if isinstance(seed, int) else 0
