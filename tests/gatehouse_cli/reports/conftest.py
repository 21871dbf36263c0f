"""A run with a refusal, a warning and texts that need escapes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.gatehouse_cli.manifests import LIMITS, OWNER, deployment, policies, run_of

if TYPE_CHECKING:
    from gatehouse_cli.trials.trial import TrialRun

FILE = "shop/100%, a:b.yaml"


@pytest.fixture
def run() -> TrialRun:
    """Of two objects, one is refused; both lack a label that a policy warns about."""
    warning = "shop, annotations: {policy.gatehouse.dev/enforcement: warn}}"
    policy_files = policies(LIMITS, OWNER.replace("shop}", warning))
    return run_of(policy_files, deployment("3"), deployment(name="small"), file=FILE)
