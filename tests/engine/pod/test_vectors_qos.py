"""The shared QoS vectors: Kubernetes' own cases, read where the folder is there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine.pod import default_pod, qos_class
from engine.wire import loads

VECTORS = Path(__file__).parents[4] / "shared" / "vectors" / "qos.json"
CASES: list[dict[str, Any]] = loads(VECTORS.read_text()) if VECTORS.exists() else []

pytestmark = pytest.mark.skipif(not CASES, reason="../shared/vectors is not there")


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_class_is_what_kubernetes_computes(case: dict[str, Any]) -> None:
    pod = default_pod(case["pod"]) if case.get("apiDefaulted") else case["pod"]
    assert qos_class(pod) == case["qos"]
