"""Compiled policies in a cluster, and their canary: written beside the policies, or deleted.

Only objects with our label are ever changed or deleted. A policy is written before its binding, and
a binding is deleted before its policy, so that no binding lacks its policy.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from engine.compiled import (
    KINDS,
    LABEL,
    MUTATING,
    VALIDATING,
    CompiledPolicy,
    compile_limit_range,
    compile_metadata_policy,
)
from engine.policy import InAPIServer
from engine.policy_manifests import decode_policy
from policies.models import LimitRange, MetadataPolicy
from sync import alerts
from sync.errors import APIError, ConflictError, NotFoundError
from sync.installation.compiled_canary import canary_manifests
from sync.installation.configurations import excluded_namespaces
from sync.values import NEW, ObjectKey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from policies.models import Cluster, CompilablePolicy
    from sync.client import Client

    Manifest = Mapping[str, Any]

ALERT: Final = "compiled-policies"
_SHOWN: Final = 5
_NO_MUTATING: Final = (
    "the API server has no MutatingAdmissionPolicies, which come with Kubernetes 1.36: only the "
    "portal sets labels and annotations"
)
_FAMILIES: Final = {
    VALIDATING: "the API server has no ValidatingAdmissionPolicies",
    MUTATING: _NO_MUTATING,
}
"""Kinds that a server has or lacks together, and the words for a server that lacks them."""


@dataclass(slots=True)
class CompiledWrite:
    """The outcome of one step: numbers of objects, and problems in words."""

    compiled: int = 0
    written: int = 0
    deleted: int = 0
    problems: list[str] = field(default_factory=list)

    def counts(self) -> dict[str, int]:
        """The numbers for a run's counts, without those that are 0."""
        numbers = {
            "compiled": self.compiled,
            "compiled written": self.written,
            "compiled deleted": self.deleted,
            "compiled failed": len(self.problems),
        }
        return {name: number for name, number in numbers.items() if number}


def write_compiled(
    cluster: Cluster, client: Client, owns: Callable[[ObjectKey], bool]
) -> CompiledWrite:
    """Bring the cluster's compiled objects up to date with the policies that the portal owns.

    Raises no ``APIError``: problems are in the outcome, and raise an alert.
    """
    outcome = CompiledWrite()
    wanted = _wanted(cluster, owns)
    outcome.compiled = len(wanted)
    if wanted:
        wanted |= {ObjectKey.of(manifest): manifest for manifest in canary_manifests()}
    for kinds, absence in _FAMILIES.items():
        wanted_here = {key: each for key, each in wanted.items() if key.kind in kinds}
        try:
            live = {kind: _listed(client, kind) for kind in kinds}
        except APIError as error:
            # Without the right, nothing of ours can be there, unless it was taken away afterwards.
            if wanted_here:
                is_absent = isinstance(error, NotFoundError)
                outcome.problems.append(absence if is_absent else str(error))
            continue
        _write_all(client, wanted_here, live, outcome)
        _delete_unwanted(client, wanted_here, live, outcome)
    alerts.set_alert(cluster, ALERT, _in_words(outcome.problems))
    return outcome


def are_beside_compiled(cluster: Cluster, keys: Iterable[ObjectKey]) -> bool:
    """Whether some of these are metadata policies of a namespace that has compiled ones.

    What can be compiled of a metadata policy depends on all others of its namespace.
    """
    namespaces = {key.namespace for key in keys if key.kind == "MetadataPolicy"}
    found = MetadataPolicy.objects.filter(
        namespace__cluster=cluster, namespace__name__in=namespaces
    )
    return bool(namespaces) and found.exclude(in_api_server=InAPIServer.OFF).exists()


def compiled_policies(cluster: Cluster) -> Iterator[tuple[CompilablePolicy, CompiledPolicy]]:
    """Compile every policy of a cluster that the API server is to enforce, too."""
    for limit_range in _asked_for(LimitRange, cluster):
        decoded = _decoded(limit_range)
        yield limit_range, compile_limit_range(decoded, decoded.in_api_server)
    asked = _asked_for(MetadataPolicy, cluster)
    beside: dict[int, list[MetadataPolicy]] = defaultdict(list)
    namespaces = {policy.namespace_id for policy in asked}
    for each in _stored(MetadataPolicy, cluster).filter(namespace__in=namespaces):
        beside[each.namespace_id].append(each)
    for policy in asked:
        others = [_decoded(each) for each in beside[policy.namespace_id] if each.pk != policy.pk]
        decoded = _decoded(policy)
        yield policy, compile_metadata_policy(decoded, decoded.in_api_server, beside=others)


def _stored(model: Any, cluster: Cluster) -> Any:
    found = model.objects.filter(namespace__cluster=cluster).order_by("namespace__name", "name")
    return found.select_related("namespace").prefetch_related(*model.row_sets)


def _asked_for(model: Any, cluster: Cluster) -> list[Any]:
    found = _stored(model, cluster).exclude(in_api_server=InAPIServer.OFF)
    return [each for each in found if not _is_left_alone(cluster, each.namespace_name)]


def _decoded(policy: CompilablePolicy) -> Any:
    return decode_policy(policy.to_manifest(), policy.kind)


def _is_left_alone(cluster: Cluster, namespace: str) -> bool:
    """Whether the webhooks leave the namespace out, so that the API server must, too."""
    return namespace in excluded_namespaces(cluster)


def _wanted(cluster: Cluster, owns: Callable[[ObjectKey], bool]) -> dict[ObjectKey, Manifest]:
    return {
        ObjectKey.of(manifest): manifest
        for policy, compiled in compiled_policies(cluster)
        if owns(ObjectKey(policy.kind, policy.namespace_name, policy.name))
        for manifest in compiled.manifests
    }


def _listed(client: Client, kind: str) -> dict[ObjectKey, Manifest]:
    return {ObjectKey.of(found): found for found in client.list(kind).items}


def _is_ours(live: Manifest) -> bool:
    return LABEL in (live["metadata"].get("labels") or {})


def _write_all(
    client: Client,
    wanted: Mapping[ObjectKey, Manifest],
    live: Mapping[str, Mapping[ObjectKey, Manifest]],
    outcome: CompiledWrite,
) -> None:
    for key in sorted(wanted, key=lambda key: KINDS.index(key.kind)):
        manifest, found = wanted[key], live[key.kind].get(key)
        if found is not None and not _is_ours(found):
            outcome.problems.append(f"{key}: there is one already that is not ours")
        elif found is None or _differs(manifest, found):
            outcome.written += _succeeds(outcome, key, partial(_apply, client, manifest, found))


def _differs(wanted: Manifest, live: Manifest) -> bool:
    metadata, live_metadata = wanted["metadata"], live["metadata"]
    maps_differ = any(
        not metadata[name].items() <= (live_metadata.get(name) or {}).items()
        for name in ("labels", "annotations")
    )
    return maps_differ or wanted["spec"] != live.get("spec")


def _apply(client: Client, manifest: Manifest, found: Manifest | None) -> None:
    # Whatever others changed in an object of ours is put right again.
    metadata = found["metadata"] if found else {"resourceVersion": NEW}
    client.apply(
        manifest,
        force=True,
        resource_version=metadata["resourceVersion"],
        uid=metadata.get("uid", ""),
    )


def _delete_unwanted(
    client: Client,
    wanted: Mapping[ObjectKey, Manifest],
    live: Mapping[str, Mapping[ObjectKey, Manifest]],
    outcome: CompiledWrite,
) -> None:
    for kind, there in reversed(list(live.items())):
        for key, found in there.items():
            if _is_ours(found) and key not in wanted:
                delete = partial(client.delete, kind, key.name, uid=found["metadata"]["uid"])
                outcome.deleted += _succeeds(outcome, key, delete)


def _succeeds(outcome: CompiledWrite, key: ObjectKey, write: Callable[[], object]) -> bool:
    try:
        write()
    except (NotFoundError, ConflictError):
        # Somebody else was faster: the next step sees what there is then.
        return False
    except APIError as error:
        outcome.problems.append(f"{key}: {error}")
        return False
    return True


def _in_words(problems: Sequence[str]) -> str:
    if not problems:
        return ""
    more = f"; and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
    return f"the API server does not enforce all policies: {'; '.join(problems[:_SHOWN])}{more}"
