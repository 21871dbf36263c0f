"""The version of a cluster, from the stored row to the answer, and back from the record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from admission.explain import redecide
from admission.models import AuditEvent
from policies import services
from tests.builders import container
from tests.reviews import new_pod, patch_of, review

if TYPE_CHECKING:
    from collections.abc import Callable

    from policies.models import Cluster

pytestmark = pytest.mark.django_db


def owning_pod() -> dict[str, Any]:
    made = new_pod("p", container())
    return {**made, "spec": {**made["spec"], "resources": {"limits": {"cpu": "2"}}}}


def test_the_rules_of_the_clusters_version_decide_and_stay_known(
    cluster: Cluster, ask: Callable[..., Any]
) -> None:
    completes = []
    for version in ("1.36", "1.37"):
        services.set_kubernetes_version(cluster=cluster, version=version, user="root")
        answer = ask(review(owning_pod()), phase="mutate").json()
        paths = [each["path"] for each in patch_of(answer)]
        completes.append("/spec/resources/requests" in paths)
    assert completes == [True, False]
    events = list(AuditEvent.objects.order_by("created"))
    then = [redecide.rules_then(event, redecide.revisions_of(event)) for event in events]
    assert [str(rules.policies.version) for rules in then if rules] == ["1.36", "1.37"]
    assert {str(redecide.rules_now(event).version) for event in events} == {"1.37"}
