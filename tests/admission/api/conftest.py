"""Every exchange of these tests with the API is as the OpenAPI document describes it."""

from __future__ import annotations

import pytest

from tests import api_document


@pytest.fixture(autouse=True)
def _described(monkeypatch: pytest.MonkeyPatch) -> None:
    api_document.watch(monkeypatch)
