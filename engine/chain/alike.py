"""``once_for_alike``: judgements kept under a key, the marshalled excerpt that new pods share.

Pods of a workload differ in names, uids and volumes, which no rule reads. A pod is cut down to what
rules do read, and that excerpt is the key. Only findings without used amounts are kept.
"""

from __future__ import annotations

import dataclasses
import marshal
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Final, TypeVar

from engine.cache import Kept
from engine.errors import DecodeError
from engine.pod import CONTAINER_LISTS

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping
    from typing import TypeAlias

    from engine.policy import PolicySet
    from engine.request import AdmissionRequest

    Found = TypeVar("Found")
    Excerpt: TypeAlias = Mapping[str, Any]
    Judge: TypeAlias = Callable[[AdmissionRequest, PolicySet, str | int | None], Found]
    JudgeOnce: TypeAlias = Callable[
        [AdmissionRequest, PolicySet, str | int | None, Hashable], Found
    ]

_KEPT_JUDGEMENTS: Final = 1024
_JUDGEMENTS_ROOM: Final = 16 * 1024 * 1024  # bytes
_KEY_TIMES: Final = 16  # estimate: a decoded excerpt takes this multiple of its key
_LEAST_BYTES: Final = 1024  # bytes of an entry beside key and findings
_MOST_CONTAINERS: Final = 400  # at ten bytes each, more exceed the longest excerpt anyway
_LONGEST_KEY: Final = 4096  # bytes of an excerpt
# Later formats of marshal write references to shared objects, so that equal values differ.
_KEY_FORMAT: Final = 0
_READ_METADATA: Final = ("labels", "annotations")  # rules read no other metadata of a new pod
_CONTAINER: Final = ("name", "restartPolicy", "resources")
_UNREAD: Final = frozenset(("volumes", *CONTAINER_LISTS))


class _OddError(Exception):
    """A pod whose excerpt is too long or has an unexpected shape: it is judged as a whole."""


class _KeyedRequest:
    """A request as a cache key: equal to those with the same key and the very same policies."""

    __slots__ = ("_excerpt", "_key", "_request", "policy_set")

    def __init__(
        self,
        request: AdmissionRequest,
        policy_set: PolicySet,
        key: Hashable,
        excerpt: Excerpt | None = None,
    ) -> None:
        self._request: AdmissionRequest | None = request
        self.policy_set, self._key, self._excerpt = policy_set, key, excerpt

    def take_request(self) -> AdmissionRequest:
        """Hand over the request, cut down to the excerpt; the key keeps only that."""
        request, self._request = self._request, None
        assert request is not None  # noqa: S101 - only the first call, a miss, takes it
        if self._excerpt is None:
            return request
        return dataclasses.replace(request, object=self._excerpt)

    @property
    def weight(self) -> int:
        """The estimated bytes of what is kept of the object."""
        return _LEAST_BYTES + (_KEY_TIMES * len(self._key) if isinstance(self._key, bytes) else 0)

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _KeyedRequest)
            # By identity: comparing two sets by value takes long.
            and self.policy_set is other.policy_set
            and self._key == other._key
        )


def once_for_alike(
    weigh: Callable[[Found], int],
) -> Callable[[Judge[Found]], JudgeOnce[Found]]:
    """Decorate a judgement so that new pods with equal excerpts share it under the same policies.

    ``weigh`` estimates the bytes of the findings. The judgement gets the excerpt and no time, which
    matters only for pods that are being deleted. Where the caller says what a pod is ``alike``, it
    is found without making the excerpt.
    """
    return partial(_once_for_alike, weigh)


def _once_for_alike(weigh: Callable[[Found], int], judge: Judge[Found]) -> JudgeOnce[Found]:
    def judge_alone(keyed: _KeyedRequest) -> Found:
        return judge(keyed.take_request(), keyed.policy_set, None)

    def recall(keyed: _KeyedRequest) -> Found:
        return recalled(_cut_down(keyed.take_request(), keyed.policy_set))

    def weigh_with_key(keyed: _KeyedRequest, findings: Found) -> int:
        return keyed.weight + weigh(findings)

    recalled = Kept(judge_alone, weigh_with_key, most=_KEPT_JUDGEMENTS, room=_JUDGEMENTS_ROOM)
    recognised = Kept(recall, weigh_with_key, most=_KEPT_JUDGEMENTS, room=_JUDGEMENTS_ROOM)

    @wraps(judge)
    def judged(
        request: AdmissionRequest,
        policy_set: PolicySet,
        now: str | int | None,
        alike: Hashable = None,
    ) -> Found:
        if request.is_new_pod and request.old_object is None:
            try:
                if alike is not None:
                    return recognised(_KeyedRequest(request, policy_set, alike))
                return recalled(_cut_down(request, policy_set))
            except (DecodeError, _OddError):
                pass  # errors must name fields in the order of the whole document
        return judge(request, policy_set, now)

    return judged


def _cut_down(request: AdmissionRequest, policy_set: PolicySet) -> _KeyedRequest:
    """Cut a new pod down to what rules may read; raises ``_OddError`` where it is long or odd."""
    obj = request.object or {}
    try:
        metadata, spec = obj["metadata"], obj["spec"]
        if "deletionTimestamp" in metadata:
            raise _OddError
        excerpt = _excerpt(metadata, spec, obj.get("status"))
        key = marshal.dumps((excerpt, request.namespace, request.dry_run), _KEY_FORMAT)
    except (AttributeError, KeyError, TypeError, ValueError):
        raise _OddError from None
    if len(key) > _LONGEST_KEY:
        raise _OddError
    return _KeyedRequest(request, policy_set, key, excerpt)


def _excerpt(metadata: Mapping[str, Any], spec: Mapping[str, Any], status: Any) -> dict[str, Any]:
    kept_spec = {name: value for name, value in spec.items() if name not in _UNREAD}
    for group in CONTAINER_LISTS:
        containers = spec.get(group)
        if type(containers) is list:
            if len(containers) > _MOST_CONTAINERS:
                raise _OddError
            kept_spec[group] = [{name: c.get(name) for name in _CONTAINER} for c in containers]
        elif containers is not None:
            raise TypeError(group)
    return {
        "metadata": {name: metadata.get(name) for name in _READ_METADATA},
        "spec": kept_spec,
        "status": status,
    }
