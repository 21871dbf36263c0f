"""Change sets: put writes into one, take its steps, publish and revert it. No HTTP, no pages."""

from policies.services.changes.contents import (
    Proposed,
    propose,
    propose_deletion,
    propose_mode,
    put,
    take_out,
)
from policies.services.changes.parts import ClusterPart, namespaces_of, store_part
from policies.services.changes.permissions import (
    ItemGroup,
    item_groups,
    may_create,
    may_steer,
    may_write,
    visible_changes,
    visible_items,
    visible_steps,
    waiting_number,
)
from policies.services.changes.publish import publish, revert
from policies.services.changes.rebase import MergeConflictError, Rebased, moved, rebase
from policies.services.changes.refusals import ItemProblem, ItemsRefusedError, no_such_item
from policies.services.changes.steps import (
    OutdatedChangeError,
    abandon,
    comment,
    create_change,
    describe_change,
    submit,
    withdraw,
)
from policies.services.changes.take_back import take_back

__all__ = [
    "ClusterPart",
    "ItemGroup",
    "ItemProblem",
    "ItemsRefusedError",
    "MergeConflictError",
    "OutdatedChangeError",
    "Proposed",
    "Rebased",
    "abandon",
    "comment",
    "create_change",
    "describe_change",
    "item_groups",
    "may_create",
    "may_steer",
    "may_write",
    "moved",
    "namespaces_of",
    "no_such_item",
    "propose",
    "propose_deletion",
    "propose_mode",
    "publish",
    "put",
    "rebase",
    "revert",
    "store_part",
    "submit",
    "take_back",
    "take_out",
    "visible_changes",
    "visible_items",
    "visible_steps",
    "waiting_number",
    "withdraw",
]
