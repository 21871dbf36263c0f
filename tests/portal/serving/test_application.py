"""Modules that a web process has loaded before its first request."""

from __future__ import annotations

import subprocess
import sys
from typing import Final

import pytest

from tests.processes import ROOT

_SHOW: Final = "import sys, portal.serving.wsgi; sys.stdout.write(' '.join(sys.modules))"


@pytest.fixture(scope="module")
def loaded() -> set[str]:
    """The loaded modules."""
    words = [sys.executable, "-c", _SHOW]
    done = subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True)  # noqa: S603 - our own words
    return set(done.stdout.split())


@pytest.mark.servers
@pytest.mark.parametrize("name", ["cryptography", "lightkube", "httpx2", "sync.passes.full_pass"])
def test_rarely_needed_libraries_are_not_loaded(loaded: set[str], name: str) -> None:
    assert name not in loaded


def test_pages_are_loaded_before_the_first_request(loaded: set[str]) -> None:
    assert {
        "portal.pages.policies.editor",
        "portal.pages.home.page",
        "admission.api.review",
    } <= loaded
