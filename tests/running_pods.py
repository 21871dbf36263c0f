"""Pods that a portal let in, charged and recorded, so that they are known to run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.utils import timezone

from admission.record import backdate
from admission.record.backdate import PastCall
from engine.request import Phase
from policies import snapshot
from tests.builders import container, pod, request
from tests.charges import admit

if TYPE_CHECKING:
    from engine.request import AdmissionRequest

OWNER = {"kind": "ReplicaSet", "name": "web-5d9f8c7b6d", "uid": "rs", "controller": True}


def asks(name: str, cpu: str = "3", *, owner: bool = True, **more: Any) -> AdmissionRequest:
    """A pod of one container; ``more`` belongs to the request."""
    owners = {"ownerReferences": [OWNER]} if owner else {}
    app = container(limits={"cpu": cpu}, requests={"cpu": cpu})
    return request(pod(app, name=name, uid=f"uid-{name}", **owners), namespace="team", **more)


def on_record(asked: AdmissionRequest, phase: Phase = Phase.VALIDATE) -> None:
    """The decision about it, as the record keeps it."""
    policies = snapshot.load("prod", "team")
    call = PastCall(
        request=asked, phase=phase, moment=timezone.now(), microseconds=1, client="", random=0,
        revision=1,
    )  # fmt: skip
    used = {quota.name: quota.used for quota in policies.resource_quotas}
    backdate.keep([backdate.decide(call, policies, used)[1]])


def running(*pods: AdmissionRequest) -> None:
    """Pods that were let in, charged and put on record."""
    for each in pods:
        on_record(each)
        assert admit(each) == [True]
