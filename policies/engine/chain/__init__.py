"""The chain: one request and all policies of its namespace become one decision."""

from policies.engine.chain.admission import Prepared, admit, prepare
from policies.engine.chain.objects import admit_object, is_policy_object

__all__ = ["Prepared", "admit", "admit_object", "is_policy_object", "prepare"]
