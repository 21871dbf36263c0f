"""The chain: one request and all policies of its namespace become one decision."""

from policies.engine.chain.admission import admit
from policies.engine.chain.objects import admit_object, is_policy_object

__all__ = ["admit", "admit_object", "is_policy_object"]
