"""Who may replay what, and see whose replays: for the API, the pages and the editor alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.core.exceptions import PermissionDenied

from admission.models import Replay
from policies import roles, snapshot

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.db.models import QuerySet

    from admission.replay.policies import Proposal

STOPPING: Final = "admission.change_replay"
"""The permission to cancel what somebody else has requested."""
NAME_PLACES: Final = "the proposal holds in all namespaces: name those to replay"


class UnseenPlaceError(ValueError):
    """A cluster or namespace that the user does not see; ``field`` names it, with a ``code``."""

    def __init__(self, field: str, code: str, message: str) -> None:
        self.field, self.code = field, code
        super().__init__(message)


def require_cluster(user: Any, cluster: str) -> None:
    """Raise ``UnseenPlaceError`` for an unknown cluster, and for one that the user does not see."""
    # One answer for both: it must not reveal that a hidden cluster exists.
    if not (roles.sees(user, cluster) and snapshot.has_cluster(cluster)):
        raise UnseenPlaceError("cluster", "unknown_cluster", f"there is no cluster {cluster}")


def require_places(
    user: Any, *, cluster: str, namespaces: Iterable[str], proposal: Proposal
) -> None:
    """Raise ``UnseenPlaceError`` for a hidden namespace, as for an unknown one.

    Raises ``PermissionDenied`` for a proposal that changes namespaces which the user does not see.
    """
    named = tuple(namespaces)
    for namespace in (*named, *proposal.namespaces):
        if not roles.sees(user, cluster, namespace):
            message = f"there is no namespace {namespace} that you may see"
            raise UnseenPlaceError("namespaces", "unknown_namespace", message)
    is_whole = not named and proposal.limited_resources is not None
    if is_whole and not roles.sees(user, cluster, ""):
        raise PermissionDenied(NAME_PLACES)


def visible_replays(user: Any) -> QuerySet[Replay]:
    """One's own, and those of clusters that one sees as a whole."""
    replays = Replay.objects.defer("proposal")
    own = replays.filter(user=user.get_username())
    seen: QuerySet[Replay] = roles.visible(replays, user, cluster="cluster", whole=True)
    return own | seen


def find_replay(user: Any, uid: Any) -> Replay | None:
    """The replay, for those who see all that it tells of."""
    # A proposal may be large, and its progress is read again and again.
    found = Replay.objects.defer("proposal").filter(uid=uid).first()
    places = (found.namespaces or [""]) if found else []
    sees = found and all(roles.sees(user, found.cluster, namespace) for namespace in places)
    return found if sees else None


def may_cancel(user: Any, replay: Replay) -> bool:
    """Whether the user may cancel it: one's own, or by a role."""
    is_own = replay.user == user.get_username()
    return is_own or roles.may(user, STOPPING, cluster=replay.cluster)
