"""schemathesis finds no fault in any operation of the API, as viewer, editor and admin.

It reads the served schema, so that it finds every operation by itself. In the short form it makes a
few requests to each operation, and tries one operation in ``SHARE`` with every odd value.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import psycopg
import pytest

from tests.servers.api_portal import ApiPortal, api_portal
from tests.servers.api_world import ROLES

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.servers
HERE: Final = Path(__file__).parent
WHOLE: Final = bool(os.environ.get("WHOLE"))
EXAMPLES: Final = int(os.environ.get("EXAMPLES", "400")) // 4 if WHOLE else 1
SHARE: Final = 60
LONGEST: Final = 3600  # seconds


@pytest.fixture(scope="module")
def portal(tmp_path_factory: pytest.TempPathFactory, postgres_server: str) -> Iterator[ApiPortal]:
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute("CREATE DATABASE api_fuzz")
    database = f"{postgres_server.rpartition('/')[0]}/api_fuzz"
    with api_portal(tmp_path_factory.mktemp("portal"), database=database) as started:
        yield started


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the configuration, in which schemathesis may leave its own files."""
    folder = tmp_path / "schemathesis"
    folder.mkdir()
    for name in ("schemathesis.toml", "schemathesis_hooks.py"):
        shutil.copy(HERE / name, folder)
    return folder


def fuzz(folder: Path, portal: ApiPortal, role: str, *more: str) -> None:
    """Run all checks as one role."""
    words = [sys.executable, "-m", "schemathesis.cli", "run", portal.schema]
    words += ["--header", f"Authorization: Token {portal.tokens[role]}", "--checks", "all", *more]
    done = subprocess.run(  # noqa: S603 - our own words
        words, cwd=folder, capture_output=True, text=True, timeout=LONGEST, check=False
    )
    assert done.returncode == 0, f"{done.stdout[-20_000:]}\n{done.stderr}"


@pytest.mark.parametrize("role", ROLES)
def test_no_operation_has_a_fault(portal: ApiPortal, folder: Path, role: str) -> None:
    fuzz(folder, portal, role, "--phases", "fuzzing,stateful", "--max-examples", str(EXAMPLES))
    chosen = portal.operations if WHOLE else random.sample(
        portal.operations, len(portal.operations) // SHARE
    )  # fmt: skip
    only = [word for name in chosen for word in ("--include-operation-id", name)]
    fuzz(folder, portal, role, "--phases", "examples,coverage", *only)
