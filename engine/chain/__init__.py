"""The chain of rules that turns a request and the policies of its namespace into a decision."""

from engine.chain.admission import Prepared, admit, prepare
from engine.chain.canary import CANARY_ANNOTATION, canary_message
from engine.chain.findings import AUTHORITY_STEP
from engine.chain.objects import admit_object, is_policy_object

__all__ = [
    "AUTHORITY_STEP",
    "CANARY_ANNOTATION",
    "Prepared",
    "admit",
    "admit_object",
    "canary_message",
    "is_policy_object",
    "prepare",
]
