"""``publish_edit`` and ``propose_open``: edits of the demo that were proposed as changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from policies.models import Cluster
from policies.services import changes
from portal.dev.demo.plot import OPEN_CHANGE, OPEN_COMMENT, at

if TYPE_CHECKING:
    import datetime as dt

    from policies.models import ChangeSet
    from portal.dev.demo.plot import DemoEdit


def publish_edit(demo_edit: DemoEdit) -> None:
    """Propose, submit and publish an edit with a title."""
    change = _new_change(demo_edit)
    _put(change, demo_edit)
    changes.publish(changes.submit(change, user=demo_edit.user), user=demo_edit.publisher)


def propose_open(now: dt.datetime) -> None:
    """Write the change that is still a draft, with a comment."""
    first, *_ = OPEN_CHANGE
    with at(now - first.back):
        change = _new_change(first)
    for demo_edit in OPEN_CHANGE:
        with at(now - demo_edit.back):
            _put(change, demo_edit)
    back, user, note = OPEN_COMMENT
    with at(now - back):
        changes.comment(change, user=user, note=note)


def _new_change(demo_edit: DemoEdit) -> ChangeSet:
    return changes.create_change(
        title=demo_edit.title,
        user=demo_edit.user,
        reason=demo_edit.reason,
        ticket=demo_edit.ticket,
    )


def _put(change: ChangeSet, demo_edit: DemoEdit) -> None:
    cluster = Cluster.objects.get(name=demo_edit.cluster)
    proposal = changes.propose(cluster, demo_edit.manifest)
    changes.put(change, proposals=[proposal], user=demo_edit.user)
