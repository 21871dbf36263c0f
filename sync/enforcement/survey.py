"""``survey``: who enforces each kind in each namespace of a cluster, and what is missing for it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from django.db.models import Count

from engine.policy import Authority, Enforcement
from policies import services
from policies.db.clock import read_clock
from policies.models import Cluster, LimitRange, MetadataPolicy, ResourceQuota
from sync.enforcement import gaps
from sync.enforcement.gaps import Gap, GapCode, GapRemedy
from sync.installation.configurations import KUBE_SYSTEM, left_out
from sync.inventory import cluster_states
from sync.models import SyncedObject
from sync.passes.read import read_ownership
from sync.values import WRITTEN_KINDS, ObjectKey

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sync.models import WebhookHealth
    from sync.passes.read import Ownership

DIFFERING: Final = (
    SyncedObject.State.CONFLICT,
    SyncedObject.State.DRIFTED,
    SyncedObject.State.HELD,
)
PROVEN: Final = (cluster_states.WORKING, cluster_states.CHANGED)
"""States of webhooks in which the last canary was refused a moment ago."""
UNSEEN_PLUGINS: Final = (
    "No API shows whether LimitRanger and ResourceQuota are on in the API server."
)
NAMES: Final = 5
"""The most policies that one gap names."""


class Enforcer(StrEnum):
    """Who refuses what a policy forbids."""

    PLUGIN = "plugin"
    PORTAL = "portal"
    NOBODY = "nobody"


class Because(StrEnum):
    """Why nobody enforces."""

    ONLY_WARNS = "only-warns"
    LEFT_OUT = "left-out"
    WEBHOOK = "webhook"


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """Who enforces the policies of one kind in one namespace.

    ``is_proven``: a canary has shown it within minutes; otherwise it follows from the settings.
    """

    namespace: str
    kind: str
    policies: int
    enforcer: Enforcer
    because: str = ""
    is_proven: bool = False

    def to_json(self) -> dict[str, Any]:
        """The holding for machines."""
        return {
            "namespace": self.namespace,
            "kind": self.kind,
            "policies": self.policies,
            "enforcer": self.enforcer.value,
            "because": self.because,
            "isProven": self.is_proven,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class EnforcementSurvey:
    """The holdings of a cluster by namespace and kind; what is missing; what cannot be seen."""

    cluster: str
    authority: str
    failure_policy: str
    webhook: str
    holdings: tuple[Holding, ...]
    gaps: tuple[Gap, ...]
    unseen: tuple[str, ...]

    @property
    def is_complete(self) -> bool:
        """Whether nothing is missing."""
        return not self.gaps

    @property
    def cluster_gaps(self) -> tuple[Gap, ...]:
        """What is missing in the whole cluster."""
        return tuple(gap for gap in self.gaps if not gap.namespace)

    def of_namespace(self, namespace: str) -> EnforcementSurvey:
        """The part that concerns one namespace, with what is missing in the whole cluster."""
        return replace(
            self,
            holdings=tuple(each for each in self.holdings if each.namespace == namespace),
            gaps=tuple(gap for gap in self.gaps if gap.namespace in ("", namespace)),
        )

    def to_json(self) -> dict[str, Any]:
        """The survey for machines."""
        return {
            "cluster": self.cluster,
            "authority": self.authority,
            "failurePolicy": self.failure_policy,
            "webhook": self.webhook,
            "isComplete": self.is_complete,
            "holdings": [each.to_json() for each in self.holdings],
            "missing": [gap.to_json() for gap in self.gaps],
            "unseen": list(self.unseen),
        }


def survey(name: str) -> EnforcementSurvey:
    """Survey a cluster by what is stored about it; a dozen queries for any number of policies."""
    cluster = Cluster.objects.select_related(
        "connection", "sync_state", "webhook_health", "follower"
    ).get(name=name)
    now = read_clock()
    not_native = services.not_native(cluster)
    webhook_gaps = gaps.webhook_gaps(cluster, now)
    judged = _StoredPolicies(
        cluster=cluster,
        not_native=not_native,
        left_out=namespaces_left_out(cluster),
        is_open=any(gap.is_open for gap in webhook_gaps),
        is_proven=cluster_states.webhook_state(cluster, now) in PROVEN,
    )
    holdings = judged.holdings()
    found: list[Gap | None] = [
        gaps.connection_gap(cluster),
        *gaps.right_gaps(cluster),
        *webhook_gaps,
        gaps.import_gap(cluster),
        *_ownership_gaps(cluster, not_native),
        *_difference_gaps(cluster),
        *gaps.uncounted_gaps(cluster),
        *_left_out_gaps(cluster, holdings),
        gaps.plugin_gap(cluster),
        gaps.follower_gap(cluster, now),
    ]
    return EnforcementSurvey(
        cluster=cluster.name,
        authority=cluster.authority,
        failure_policy=cluster.failure_policy,
        webhook=cluster_states.webhook_state(cluster, now),
        holdings=holdings,
        gaps=tuple(gap for gap in found if gap is not None),
        unseen=_unseen(cluster),
    )


def namespaces_left_out(cluster: Cluster) -> tuple[str, ...]:
    """The namespaces that the webhooks leave out: by the settings, or as they are installed.

    What was set takes effect with the next installation; until then the narrower of both holds.
    """
    health: WebhookHealth | None = getattr(cluster, "webhook_health", None)
    return tuple(dict.fromkeys([*left_out(cluster), *(health.left_out if health else ())]))


@dataclass(frozen=True, slots=True, kw_only=True)
class _StoredPolicies:
    """What the enforcer of a kind in a namespace follows from."""

    cluster: Cluster
    not_native: Mapping[str, list[str]]
    left_out: tuple[str, ...]
    is_open: bool
    is_proven: bool

    def holdings(self) -> tuple[Holding, ...]:
        """One for each kind in each namespace that has policies of it."""
        counts: dict[tuple[str, str], list[tuple[str, bool, int]]] = defaultdict(list)
        for model in (LimitRange, ResourceQuota, MetadataPolicy):
            has_flag = model is not MetadataPolicy
            columns = ["namespace__name", "enforcement", *(["is_native"] if has_flag else [])]
            rows = model.objects.filter(namespace__cluster=self.cluster).order_by()
            for namespace, enforcement, *flag, number in rows.values_list(*columns).annotate(
                Count("id")
            ):
                counts[namespace, model.kind].append((enforcement, flag == [True], number))
        places = sorted(counts, key=lambda place: (place[0], WRITTEN_KINDS.index(place[1])))
        return tuple(self._holding(*place, counts[place]) for place in places)

    def _holding(self, namespace: str, kind: str, rows: list[tuple[str, bool, int]]) -> Holding:
        total = sum(number for *_, number in rows)
        enforced = sum(number for mode, _, number in rows if mode == Enforcement.ENFORCE)
        # The plugins know nothing of our enforcement modes: they act on each object that is there.
        in_cluster = sum(number for _, is_native, number in rows if is_native)
        is_plugins = (
            kind != "MetadataPolicy"
            and self.cluster.authority == Authority.NATIVE
            and namespace not in self.not_native
        )
        if is_plugins:
            enforcer = Enforcer.PLUGIN if in_cluster else Enforcer.NOBODY
            because = "" if in_cluster else Because.ONLY_WARNS.value
            is_proven = kind == "ResourceQuota" and gaps.is_quota_plugin_seen(self.cluster)
            is_proven = is_proven and enforcer is Enforcer.PLUGIN
        else:
            enforcer, because = self._portals(namespace, enforced)
            is_proven = enforcer is Enforcer.PORTAL and self.is_proven
        return Holding(
            namespace=namespace,
            kind=kind,
            policies=total,
            enforcer=enforcer,
            because=because,
            is_proven=is_proven,
        )

    def _portals(self, namespace: str, enforced: int) -> tuple[Enforcer, str]:
        if not enforced:
            return Enforcer.NOBODY, Because.ONLY_WARNS.value
        if namespace in self.left_out:
            return Enforcer.NOBODY, Because.LEFT_OUT.value
        if self.is_open:
            return Enforcer.NOBODY, Because.WEBHOOK.value
        return Enforcer.PORTAL, ""


def _ownership_gaps(cluster: Cluster, not_native: Mapping[str, list[str]]) -> list[Gap]:
    """Ranges and quotas that the plugins should enforce, and that the cluster does not have."""
    if cluster.authority != Authority.NATIVE:
        return []
    ownership = read_ownership(cluster)
    return [
        _absence(cluster, ownership, namespace, names)
        for namespace, names in sorted(not_native.items())
    ]


def _absence(cluster: Cluster, ownership: Ownership, namespace: str, names: list[str]) -> Gap:
    keys = [ObjectKey(*_kind_and_name(name, namespace)) for name in names]
    listed = ", ".join(names[:NAMES])
    listed += f" and {len(names) - NAMES} more" if len(names) > NAMES else ""
    until = "the portal enforces the namespace until the cluster has them"
    if all(ownership.covers(key) for key in keys):
        return Gap(
            code=GapCode.PENDING,
            words=f"Not written to the cluster yet: {listed}; {until}.",
            command=gaps.manage("sync", cluster, "--follow"),
            remedy=GapRemedy.SYNCHRONIZE,
            namespace=namespace,
        )
    return Gap(
        code=GapCode.OWNERSHIP,
        words=f"Only in the portal, which may not write there: {listed}; {until}.",
        command=gaps.manage("cluster_ownership", cluster, "take --namespace", namespace),
        remedy=GapRemedy.OWN,
        namespace=namespace,
    )


def _kind_and_name(text: str, namespace: str) -> tuple[str, str, str]:
    kind, _, name = text.partition(" ")
    return kind, namespace, name


def _difference_gaps(cluster: Cluster) -> list[Gap]:
    """Objects whose two sides differ: one of them is not enforced."""
    rows = SyncedObject.objects.filter(
        cluster=cluster, gone=None, kind__in=WRITTEN_KINDS, state__in=DIFFERING
    )
    return [
        Gap(
            code=GapCode.DIFFERENCE,
            words=f"{kind} {name} differs between portal and cluster ({state}): "
            f"{_side_in_force(cluster, kind)} counts.",
            remedy=GapRemedy.RESOLVE,
            namespace=namespace,
        )
        for namespace, kind, name, state in rows.order_by("namespace", "kind", "name").values_list(
            "namespace", "kind", "name", "state"
        )
    ]


def _side_in_force(cluster: Cluster, kind: str) -> str:
    is_plugins = cluster.authority == Authority.NATIVE and kind != "MetadataPolicy"
    return "the cluster's side" if is_plugins else "the portal's side"


def _left_out_gaps(cluster: Cluster, holdings: tuple[Holding, ...]) -> list[Gap]:
    places = [each.namespace for each in holdings if each.because == Because.LEFT_OUT]
    return [_left_out_gap(cluster, namespace) for namespace in dict.fromkeys(places)]


def _left_out_gap(cluster: Cluster, namespace: str) -> Gap:
    start = f"The webhooks leave {namespace} out: the portal enforces nothing there."
    cure = ""
    if namespace not in left_out(cluster):
        cure = "The settings cover it: install the webhooks again."
    elif namespace == KUBE_SYSTEM:
        cure = "Set covers_kube_system of the cluster (API), and install the webhooks again."
    elif namespace in cluster.excluded_namespaces:
        cure = "Include it again in the cluster's settings, and install the webhooks again."
    return Gap(
        code=GapCode.LEFT_OUT,
        words=f"{start} {cure or 'Its policies have no effect.'}",
        namespace=namespace,
        command=gaps.install_command(cluster) if cure else "",
        is_open=True,
    )


def _unseen(cluster: Cluster) -> tuple[str, ...]:
    """What no API shows, and what is therefore taken from the cluster's authority."""
    if gaps.is_quota_plugin_seen(cluster):
        return ()
    if cluster.authority == Authority.NATIVE:
        meant = "They are by default, and this cluster's authority (native) relies on it."
    else:
        meant = (
            f"With the authority portal they are expected to be off ({gaps.DISABLE_PLUGINS}); "
            "if they are on, both sides refuse."
        )
    return (f"{UNSEEN_PLUGINS} {meant}",)
