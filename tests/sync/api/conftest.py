"""Every exchange of these tests with the API is as the OpenAPI document describes it."""

from __future__ import annotations

from ipaddress import ip_network
from typing import TYPE_CHECKING

import pytest

from sync.connect import seal_keys
from tests import api_document
from tests.sync.fake_api import fake_api

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytest_django import SettingsWrapper

    from tests.sync.fake_api import FakeAPI


@pytest.fixture(autouse=True)
def _described(monkeypatch: pytest.MonkeyPatch) -> None:
    api_document.watch(monkeypatch)


@pytest.fixture
def api_server(settings: SettingsWrapper, tmp_path: Path) -> Iterator[FakeAPI]:
    """An API server, and keys to seal its credential with."""
    settings.GATEHOUSE_SEAL_PUBLIC_KEYS_FILE = tmp_path / "public.pem"
    settings.GATEHOUSE_SEAL_PRIVATE_KEYS_FILE = tmp_path / "private.pem"
    settings.GATEHOUSE_CLUSTER_ADDRESSES = (ip_network("127.0.0.0/8"),)
    seal_keys.ensure_keys()
    with fake_api() as server:
        yield server
