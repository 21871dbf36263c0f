"""The chain of rules that turns a request and the policies of its namespace into a decision."""

from engine.chain.admission import Prepared, admit, prepare
from engine.chain.canary import CANARY_ANNOTATION, canary_message, is_canary
from engine.chain.findings import AUTHORITY_STEP
from engine.chain.objects import admit_object, is_policy_object
from engine.chain.replicas import PodsDecision, admit_pods

__all__ = [
    "AUTHORITY_STEP",
    "CANARY_ANNOTATION",
    "PodsDecision",
    "Prepared",
    "admit",
    "admit_object",
    "admit_pods",
    "canary_message",
    "is_canary",
    "is_policy_object",
    "prepare",
]
