"""What a web process holds in memory before anybody asks it for anything."""

from __future__ import annotations

import subprocess
import sys
from typing import Final

import pytest

from tests.processes import ROOT

_SHOW: Final = "import sys, portal.serving.wsgi; sys.stdout.write(' '.join(sys.modules))"


@pytest.fixture(scope="module")
def loaded() -> set[str]:
    """The modules that answering loads."""
    words = [sys.executable, "-c", _SHOW]
    done = subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True)  # noqa: S603 - our own words
    return set(done.stdout.split())


@pytest.mark.servers
@pytest.mark.parametrize("name", ["cryptography", "lightkube", "httpx2", "sync.passes.full_pass"])
def test_what_few_need_is_left_to_those_who_do(loaded: set[str], name: str) -> None:
    assert name not in loaded


def test_pages_are_loaded_before_they_are_asked_for(loaded: set[str]) -> None:
    assert {
        "portal.pages.policies.editor",
        "portal.pages.home.page",
        "admission.api.review",
    } <= loaded
