"""Test settings: plain HTTP, cheap passwords, a database in a temporary folder."""

from __future__ import annotations

import os
import sys
import tempfile
import zlib
from contextlib import contextmanager
from functools import _lru_cache_wrapper
from importlib import import_module
from ipaddress import ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

ROOT = Path(__file__).resolve().parents[1]
SQL_SHOWN: Final = 400  # characters of a query
UNHURRIED: Final = 60.0  # seconds
SEARCH_LIMITS: Final = (
    "admission.models.audit_event.SEARCH_SECONDS",
    "admission.record.search.search.SEARCH_SECONDS",
    "admission.record.search.day_tallies.SEARCH_SECONDS",
    "admission.explain.suggest.SECONDS",
)
# Neither a developer's .env nor the product's var/ may affect a test, or a process that a test
# starts.
os.environ["GATEHOUSE_ENV_FILE"] = os.devnull
# The duration of an example means nothing on a machine with other load.
hypothesis_settings.register_profile(
    "untimed",
    deadline=None,
    max_examples=int(os.environ.get("EXAMPLES", "60")),
    suppress_health_check=[HealthCheck.too_slow],
)
hypothesis_settings.load_profile("untimed")


def pytest_configure(config: pytest.Config) -> None:
    from django.conf import settings  # noqa: PLC0415 - pytest-django reads them before this file

    settings.GATEHOUSE_EXTERNAL_URL = "http://127.0.0.1:8000"
    settings.GATEHOUSE_CLUSTER_ADDRESSES = [ip_network("127.0.0.0/8")]
    # A clean checkout has no collected files; any existing folder suffices.
    settings.STATIC_ROOT = ROOT / "portal" / "frontend"
    settings.SECURE_SSL_REDIRECT = False
    settings.SESSION_COOKIE_SECURE = settings.CSRF_COOKIE_SECURE = False
    settings.SESSION_COOKIE_NAME, settings.CSRF_COOKIE_NAME = "sessionid", "csrftoken"
    settings.ALLOWED_HOSTS = ["testserver", "127.0.0.1", "localhost"]
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    settings.STORAGES = {
        **settings.STORAGES,
        "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
    }


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--one-in", type=int, default=1, metavar="N", help="run one in N of tests marked sampled"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Draw the sample by the random seed: each run draws another, and a run can be repeated."""
    one_in, seed = config.getoption("one_in"), config.getoption("randomly_seed", 0)
    left_out = [
        item
        for item in items
        if item.get_closest_marker("sampled")
        and zlib.crc32(f"{seed} {item.nodeid}".encode()) % one_in
    ]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        dropped = set(left_out)
        items[:] = [item for item in items if item not in dropped]


@pytest.fixture(scope="session")
def django_db_modify_db_settings(
    django_db_modify_db_settings_parallel_suffix: None,
) -> Iterator[None]:
    """Store SQLite's test database in a file: threads of one test share it like processes."""
    from django.db import connections  # noqa: PLC0415 - settings must be configured first

    config = connections["default"].settings_dict
    if connections["default"].vendor != "sqlite":
        yield
        return
    with tempfile.TemporaryDirectory(prefix="gatehouse-test-") as folder:
        config["TEST"]["NAME"] = str(Path(folder) / "test.sqlite3")
        yield


@pytest.fixture(scope="session", autouse=True)
def _unhurried() -> Iterator[None]:
    """Let searches end where the rows do: a machine under load reads few of them in a second."""
    with pytest.MonkeyPatch.context() as patch:
        for limit in SEARCH_LIMITS:
            patch.setattr(limit, UNHURRIED)
        yield


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of recorded answers and vectors beside the checkout."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        pytest.skip(f"there is no {folder}: recorded answers cannot be replayed")
    return folder


@pytest.fixture(autouse=True)
def _database_forgotten() -> Iterator[None]:
    """Clear what the process knows of a database that is rolled back: policies, partitions."""
    yield
    if "policies.snapshot" in sys.modules:
        sys.modules["policies.snapshot"].forget()
    if "admission.models.partitions" in sys.modules:
        sys.modules["admission.models.partitions"].forget_recent_days()


@pytest.fixture(autouse=True)
def _no_writer_left() -> Iterator[None]:
    """End the writer that a test has started: it holds a connection to the test's database."""
    yield
    if "admission.writer" in sys.modules:
        sys.modules["admission.writer"].stop()


JUDGING = ("engine", "admission.wire.review")
RECORDS = (
    "admission.migrations.0002_append_only",
    "policies.migrations.0002_append_only",
    "policies.migrations.0010_ledger_entries",
    "policies.migrations.0013_change_sets",
    "policies.migrations.0016_sign_ins_append_only",
    "policies.migrations.0018_approvals",
)


@pytest.fixture
def _emptied_records(transactional_db: None) -> Iterator[None]:
    """Disable the triggers of the records, so that the database can be emptied after the test."""
    from django.db import connection  # noqa: PLC0415 - settings must be configured first

    for triggers in map(import_module, RECORDS):
        triggers.drop(connection)
        triggers.create(connection)
    yield
    for triggers in map(import_module, RECORDS):
        triggers.drop(connection)


@pytest.fixture(autouse=True)
def _records_can_be_emptied(request: pytest.FixtureRequest) -> None:
    """Disable them for every test that commits permanently."""
    marker = request.node.get_closest_marker("django_db")
    commits = marker is not None and marker.kwargs.get("transaction")
    if commits or {"transactional_db", "live_server"} & set(request.fixturenames):
        request.getfixturevalue("_emptied_records")


@pytest.fixture
def django_assert_max_num_queries(db: None) -> Callable[[int], AbstractContextManager[Any]]:
    """Fail if there are more queries, and name them: with pytest's plugin only ``-v`` does."""
    from django.db import connection  # noqa: PLC0415 - settings must be configured first
    from django.test.utils import CaptureQueriesContext  # noqa: PLC0415 - as above

    @contextmanager
    def at_most(number: int) -> Iterator[None]:
        with CaptureQueriesContext(connection) as asked:
            yield asked
        statements = [query["sql"][:SQL_SHOWN] for query in asked.captured_queries]
        if len(statements) > number:
            pytest.fail("\n".join([f"{len(statements)} queries, {number} expected", *statements]))

    return at_most


@pytest.fixture(autouse=True)
def _untraced_answers_forgotten(request: pytest.FixtureRequest) -> Iterator[None]:
    """Clear cached answers of tests without coverage, from which traced ones would miss lines."""
    yield
    if request.node.get_closest_marker("no_cover") is not None:
        from engine.cache import Kept  # noqa: PLC0415  nothing of ours before coverage

        for module in [sys.modules[name] for name in sys.modules if name.startswith(JUDGING)]:
            for one in vars(module).values():
                for kept in (one, *_enclosed(one)):
                    if isinstance(kept, _lru_cache_wrapper | Kept):
                        kept.cache_clear()


def _enclosed(function: object) -> list[object]:
    """The closure of a function."""
    return [cell.cell_contents for cell in getattr(function, "__closure__", None) or ()]
