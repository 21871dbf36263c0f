"""One is told as one."""

from __future__ import annotations

import pytest

from policies.plurals import counted


@pytest.mark.parametrize(
    ("number", "plural", "expected"),
    [
        (1, "pods", "1 pod"),
        (0, "pods", "0 pods"),
        (1204, "decisions", "1,204 decisions"),
        (1, "networkpolicies", "1 networkpolicy"),
        (1, "ingresses.networking.k8s.io", "1 ingress.networking.k8s.io"),
        (1, "priorityclasses", "1 priorityclass"),
        (2, "ingresses", "2 ingresses"),
        (1, "leases", "1 lease"),
        (1, "endpointslices", "1 endpointslice"),
        (1, "batches", "1 batch"),
    ],
)
def test_a_number_has_its_noun(number: int, plural: str, expected: str) -> None:
    assert counted(number, plural) == expected
