"""What the matrix of roles is asked about: changes in each state, a rule, a test, a replay."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.contrib.auth import get_user_model
from django.utils import timezone

from admission.models import AuditEvent, decision_id, partitions
from admission.replay.of_change import request_all
from policies.change_sets.rollout.plan import read_plan
from policies.history import format_instant
from policies.models import KeptTest, LimitRange, RoleBinding
from policies.services import apply_manifest, bind_role, changes
from policies.services.changes import rollout
from tests import builders, charges, factories, people
from tests.approvals import approved_by, rule
from tests.changes import AUTHOR, change_of, limit
from tests.kept_tests import kept, pod
from tests.namespace_classes import limits, saved_class

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from policies.models import ChangeSet

ROLES: Final = (
    *("nobody", "elsewhere", "viewer", "auditor", "editor", "approver", "admin", "author"),
)
"""In the order of the columns; ``elsewhere`` is admin of another namespace."""
DECISION: Final = decision_id.encode(1_780_000_000_000, 1)
PLAN: Final[dict[str, Any]] = {"waves": [{"stages": [{"mode": "enforce", "dwell": 600}]}]}


def people_of_all_roles() -> dict[str, User]:
    """One person of each role; the author is the editor who wrote all changes."""
    found = {role: people.person(role, role) for role in ROLES[2:-1]}
    found["nobody"] = people.nobody("nobody")
    found["elsewhere"] = people.person("elsewhere", "admin", cluster="prod", namespace="other")
    found["author"] = people.person(AUTHOR, "editor")
    return found


def make_world() -> dict[str, Any]:
    """What addresses and bodies name, by the words in braces."""
    factories.namespace("other")
    _stored()
    made = {"draft": _change("draft"), "published": _published("published")}
    made["rolling"] = _submitted("rolling")
    rollout.put_plan(made["rolling"], plan=read_plan(PLAN), user=AUTHOR)
    rollout.start(made["rolling"], user=AUTHOR)
    made["stopped"] = _submitted("stopped")
    rollout.put_plan(made["stopped"], plan=read_plan(PLAN), user=AUTHOR)
    rollout.start(made["stopped"], user=AUTHOR)
    rollout.stop(made["stopped"], user=AUTHOR)
    terms = rule()
    made["waiting"] = _submitted("waiting")
    made["approved"] = _submitted("approved")
    rollout.put_plan(made["approved"], plan=read_plan(PLAN), user=AUTHOR)
    approved_by(made["approved"], people.person("ben", "approver"))
    made["emergency"] = changes.publish_now(
        _change("emergency"), user=AUTHOR, reason="an outage", seen=""
    )
    replay, *_ = request_all(
        made["draft"].pk, items=made["draft"].items.all(), user=_person(AUTHOR), days=1
    )
    given = RoleBinding(user=_person("elsewhere"), role="viewer", cluster="gone")
    bind_role(binding=given, author=_person(AUTHOR))
    for change in made.values():
        change.refresh_from_db()
    return {
        **{name: change.pk for name, change in made.items()},
        "waiting_hash": made["waiting"].content_hash,
        "item": made["draft"].items.get().pk,
        "rule": terms.pk,
        "revision": terms.revision,
        "test": KeptTest.objects.get().pk,
        "replay": replay.uid,
        "decision": DECISION,
        "then": str(format_instant(timezone.now())),
        "range": LimitRange.objects.get(name="draft").pk,
        "binding": given.pk,
    }


def _person(name: str) -> User:
    found: User = get_user_model().objects.get(username=name)
    return found


def _stored() -> None:
    """Store one of each kind, and a decision."""
    for name in ("draft", "published", "rolling", "stopped", "waiting", "approved", "emergency"):
        factories.apply(limit("1", name=name))
    factories.resource_quota({"pods": "3"}, name="compute")
    unlike = {"labelSelector": {"matchLabels": {"tier": "none"}}}
    rejects = {"policyPredicate": unlike, "policyAction": {"reject": True}}
    factories.metadata_policy(rejects, name="mdp")
    factories.priority_class()
    saved_class("gold", policies=[limits("500m")])
    apply_manifest(cluster=factories.cluster(), manifest=kept(), user=AUTHOR)
    charges.admit(builders.request(builders.pod(uid="u"), namespace="team"))
    partitions.ensure(decision_id.moment(DECISION))
    names = {"cluster": "prod", "namespace": "team", "kind": "Pod", "phase": "validate"}
    asked = {"operation": "CREATE", "user": "alice", "request": {"object": pod("1")}}
    AuditEvent(id=DECISION, duration_us=1, verdict="allowed", code=200, **names, **asked).save()


def _change(name: str) -> ChangeSet:
    return change_of(limit("2", name=name))


def _submitted(name: str) -> ChangeSet:
    return changes.submit(_change(name), user=AUTHOR)


def _published(name: str) -> ChangeSet:
    return changes.publish(_submitted(name), user=AUTHOR)
