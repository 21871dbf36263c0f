"""Judge equal new pods once: pods that differ in nothing that a rule reads share a result.

Pods come in sets of one template: their names, uids and volumes differ, and so do the names that a
denial puts before its text, but not what is found. Only findings without used amounts are kept.
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

_KEPT: Final = 1024
_ROOM: Final = 16 * 1024 * 1024  # bytes
_TIMES: Final = 16  # an excerpt takes so many times the bytes of its key
_LEAST: Final = 1024  # bytes of a key alone
_MOSTCONTAINER_LISTS: Final = 400  # none has less than ten bytes
_LONGEST: Final = 4096  # bytes of an excerpt
_PLAIN_FORMAT: Final = 0  # of marshal: the same bytes for the same value, wherever it came from
_METADATA: Final = ("labels", "annotations")
_CONTAINER: Final = ("name", "restartPolicy", "resources")
_UNREAD: Final = frozenset(("volumes", *CONTAINER_LISTS))


class _OddError(Exception):
    """A pod that is judged as a whole."""


class _KeyedRequest:
    """A request, and what is kept of its object; equal to others of the same key and policies."""

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
        """Give the request, once, cut down to the excerpt: the rest need not be kept."""
        request, self._request = self._request, None
        assert request is not None  # noqa: S101 - asked by the one call that is not recalled
        if self._excerpt is None:
            return request
        return dataclasses.replace(request, object=self._excerpt)

    @property
    def weight(self) -> int:
        """The bytes of what is kept of the object, about."""
        return _LEAST + (_TIMES * len(self._key) if isinstance(self._key, bytes) else 0)

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _KeyedRequest)
            and self.policy_set is other.policy_set
            and self._key == other._key
        )


def once_for_alike(
    weigh: Callable[[Found], int],
) -> Callable[[Judge[Found]], Judge[Found]]:
    """Make a judgement of new pods answer for all that are alike, under the very same policies.

    ``weigh`` estimates the bytes of what was found. The judgement sees the excerpt alone, and no
    time: only pods that are being deleted are asked for it. Pods that are known to be alike as
    they come need not even be cut down.
    """
    return partial(_once_for_alike, weigh)


def _once_for_alike(weigh: Callable[[Found], int], judge: Judge[Found]) -> Judge[Found]:
    def judge_alone(asked: _KeyedRequest) -> Found:
        return judge(asked.take_request(), asked.policy_set, None)

    def recall(asked: _KeyedRequest) -> Found:
        return recalled(_cut_down(asked.take_request(), asked.policy_set))

    def weigh_with_key(asked: _KeyedRequest, found: Found) -> int:
        return asked.weight + weigh(found)

    recalled = Kept(judge_alone, weigh_with_key, most=_KEPT, room=_ROOM)
    recognised = Kept(recall, weigh_with_key, most=_KEPT, room=_ROOM)

    @wraps(judge)
    def judged(
        request: AdmissionRequest, policy_set: PolicySet, now: str | int | None = None
    ) -> Found:
        if request.is_new_pod and request.old_object is None:
            try:
                known = request.likeness
                if known is not None and known.of is request.object:
                    return recognised(_KeyedRequest(request, policy_set, known.template))
                return recalled(_cut_down(request, policy_set))
            except (DecodeError, _OddError):
                pass  # what cannot be read is worded from the whole, in its own order
        return judge(request, policy_set, now)

    return judged


def _cut_down(request: AdmissionRequest, policy_set: PolicySet) -> _KeyedRequest:
    """Keep what rules may read of a new pod; raises ``_OddError`` for what is long or odd."""
    obj = request.object or {}
    try:
        metadata, spec = obj["metadata"], obj["spec"]
        if "deletionTimestamp" in metadata:
            raise _OddError
        excerpt = _excerpt(metadata, spec, obj.get("status"))
        text = marshal.dumps((excerpt, request.namespace, request.dry_run), _PLAIN_FORMAT)
    except (AttributeError, KeyError, TypeError, ValueError):
        raise _OddError from None
    if len(text) > _LONGEST:
        raise _OddError
    return _KeyedRequest(request, policy_set, text, excerpt)


def _excerpt(metadata: Mapping[str, Any], spec: Mapping[str, Any], status: Any) -> dict[str, Any]:
    kept = {name: value for name, value in spec.items() if name not in _UNREAD}
    for group in CONTAINER_LISTS:
        containers = spec.get(group)
        if type(containers) is list:
            if len(containers) > _MOSTCONTAINER_LISTS:
                raise _OddError
            kept[group] = [{name: c.get(name) for name in _CONTAINER} for c in containers]
        elif containers is not None:
            raise TypeError(group)
    return {
        "metadata": {name: metadata.get(name) for name in _METADATA},
        "spec": kept,
        "status": status,
    }
