"""``load_at``: the policies of a namespace at an instant, as the engine evaluates them."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from engine.kubernetes_version import stored_version
from engine.policy import Authority, PolicySet
from engine.policy_manifests import build_policy_set
from engine.quantity import ZERO
from engine.resource_list import to_json
from engine.resource_quota import is_tracked
from policies.history.objects import POLICY_KINDS, in_force, objects_of, revisions_at
from policies.history.usage import used_at
from policies.models import Cluster, PolicyRevision, ResourceQuota
from policies.snapshot.values import authority_of

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable, Mapping, Sequence

    from engine.resource_list import ResourceList
    from policies.history.objects import PastObject

_LIMITED: Final = "limitedResources"
_CONFIGURATION: Final = "ResourceQuotaConfiguration"
# The services' own words, which nobody but their callers may import; a test compares them.
NATIVE_POLICIES: Final = "NativePolicies"
COUNTED_QUOTAS: Final = "CountedQuotas"
_NATIVE_KINDS: Final = ("LimitRange", "ResourceQuota")
_WIDE_KINDS: Final = (_CONFIGURATION, Cluster.kind)


def load_at(
    cluster: str,
    namespace: str,
    instant: dt.datetime,
    *,
    with_usage: bool = True,
    without: str = "",
) -> PolicySet:
    """The policy set of a namespace at an instant; raises ``DecodeError``.

    Without ``with_usage`` nothing is known of what quotas use; ``without`` is the uid of an object
    whose charges do not count.
    """
    kinds = (*POLICY_KINDS, *_WIDE_KINDS, NATIVE_POLICIES)
    writes = revisions_at([cluster], instant)
    found = objects_of(in_force(writes, kinds=kinds, namespaces=["", namespace]))
    policies = [each for each in found if each.kind in POLICY_KINDS]
    used = used_of(policies, instant, without=without) if with_usage else {}
    return _build(cluster, namespace, found, used)


def used_of(
    policies: Iterable[PastObject], instant: dt.datetime, *, without: str = ""
) -> dict[str, dict[str, str]]:
    """What the quotas among some policies used at an instant, as texts by uid.

    Tracked names that nothing was charged to are 0; those that were not counted yet are left out.
    """
    quotas = {UUID(each.uid): each for each in policies if each.kind == "ResourceQuota"}
    return used_texts(quotas, instant, used_at(quotas, instant, without=without))


def used_texts(
    quotas: Mapping[UUID, PastObject], instant: dt.datetime, used: Mapping[UUID, ResourceList]
) -> dict[str, dict[str, str]]:
    """The same of quotas by uid, from what they were charged at the instant."""
    uncounted = _uncounted(quotas, instant)
    return {
        str(uid): to_json(
            {
                name: used[uid].get(name, ZERO)
                for name in (each.manifest.get("spec") or {}).get("hard") or {}
                if is_tracked(name) and name not in uncounted[uid]
            }
        )
        for uid, each in quotas.items()
    }


def _uncounted(quotas: Mapping[UUID, PastObject], instant: dt.datetime) -> dict[UUID, set[str]]:
    """The names that were counted after an instant at the earliest, of each quota."""
    found: dict[UUID, set[str]] = {uid: set() for uid in quotas}
    stored = ResourceQuota.objects.filter(uid__in=quotas).order_by()
    for uid, names in stored.values_list("uid", "uncounted"):
        found[uid].update(names)
    counted_later = PolicyRevision.objects.filter(
        kind=COUNTED_QUOTAS,
        cluster__in={each.cluster for each in quotas.values()},
        namespace__in={each.namespace for each in quotas.values()},
        created__gt=instant,
    )
    later: dict[tuple[str, str, str], set[str]] = {}
    for cluster, namespace, before in counted_later.values_list("cluster", "namespace", "before"):
        for name, names in ((before or {}).get("spec") or {}).get("uncounted", {}).items():
            later.setdefault((cluster, namespace, name), set()).update(names)
    for uid, each in quotas.items():
        found[uid] |= later.get((each.cluster, each.namespace, each.name), set())
    return found


def _build(
    cluster: str,
    namespace: str,
    found: Sequence[PastObject],
    used: Mapping[str, Mapping[str, str]],
) -> PolicySet:
    policies = [each for each in found if each.kind in POLICY_KINDS]
    wide = {each.kind: each.manifest for each in found if each.kind in _WIDE_KINDS}
    settings = wide.get(Cluster.kind, {}).get("spec") or {}
    policy_set = build_policy_set(
        [with_status(each, used.get(each.uid, {})) for each in policies],
        list(wide.get(_CONFIGURATION, {}).get(_LIMITED) or ()),
        namespace=namespace,
        version=stored_version(settings.get("kubernetesVersion") or ""),
    )
    numbers = {(each.kind, each.name): each.number for each in policies}
    return dataclasses.replace(
        policy_set,
        cluster=cluster,
        authority=authority_of(
            Authority(settings.get("authority") or Authority.PORTAL),
            is_native=_is_native(policies, found),
        ),
        limit_ranges=_numbered(policy_set.limit_ranges, numbers),
        metadata_policies=_numbered(policy_set.metadata_policies, numbers),
        resource_quotas=_numbered(policy_set.resource_quotas, numbers),
    )


def _is_native(policies: Sequence[PastObject], found: Iterable[PastObject]) -> bool:
    """Whether the cluster itself had all policies, as it was last seen."""
    seen = next((each for each in found if each.kind == NATIVE_POLICIES), None)
    if seen is None:
        return not any(each.kind in _NATIVE_KINDS for each in policies)
    return not seen.manifest["spec"]["missing"]


def with_status(policy: PastObject, used: Mapping[str, str]) -> dict[str, Any]:
    """The manifest of a policy; a quota's with its status, as far as ``used`` is known."""
    manifest: dict[str, Any] = dict(policy.manifest)
    if policy.kind != "ResourceQuota":
        return manifest
    hard = (manifest.get("spec") or {}).get("hard") or {}
    return {**manifest, "status": {"hard": hard, "used": dict(used)}}


def _numbered(decoded: Sequence[Any], numbers: Mapping[tuple[str, str], int]) -> tuple[Any, ...]:
    return tuple(
        dataclasses.replace(each, revision=numbers[each.ref.kind, each.name])
        for each in sorted(decoded, key=lambda each: each.name.encode())
    )
