"""From names that a quota bounds to the resources whose objects count under them."""

from __future__ import annotations

import pytest

from engine.resource_quota import resources_of


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["cpu"], {"pods"}),
        (["count/pods", "requests.example.com/gpu"], {"pods"}),
        (["services.nodeports"], {"services"}),
        (["gold.storageclass.storage.k8s.io/requests.storage"], {"persistentvolumeclaims"}),
        (["gpu.deviceclass.resource.k8s.io/devices"], {"resourceclaims.resource.k8s.io"}),
        (["count/resourceclaims.resource.k8s.io"], {"resourceclaims.resource.k8s.io"}),
        (["secrets", "count/secrets"], {"secrets"}),
        (["count/deployments.apps", "configmaps"], {"deployments.apps", "configmaps"}),
        (["count/events", "count/", "example.com/gpu"], set()),
        ([], set()),
    ],
    ids=lambda case: ",".join(sorted(case)),
)
def test_resources_of_names(names: list[str], expected: set[str]) -> None:
    assert {str(each) for each in resources_of(names)} == expected
