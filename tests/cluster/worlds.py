"""A namespace for each set of policies, with the quota status that the controller would write.

The API server judges by the state of its informers, which see changes in order: once the last
change of a batch is visible, all earlier ones are. A dedicated namespace shows this
(``Barrier``).
"""

from __future__ import annotations

import copy
import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tests.cluster.cases import OVERHEAD, RUNTIME
from tests.cluster.rules import CLASSES, PRIORITIES
from tests.processes import wait_for

if TYPE_CHECKING:
    from tests.cluster.api_client import Answer, ApiClient
    from tests.cluster.cases import Case

_NAMESPACE: Final = "sentinel"
_NUMBERS: Final = itertools.count(1)


class Observed(NamedTuple):
    """The API server's answer to a case."""

    code: int
    message: str
    object: dict[str, Any]
    used: dict[str, dict[str, str]] | None

    @property
    def is_allowed(self) -> bool:
        """Whether it would be, or was, stored."""
        return self.code < 300


def prepare_cluster(api: ApiClient, *, default_priority: str = "") -> None:
    """Create the objects that all cases share: classes, and the barrier's namespace."""
    for name, number in PRIORITIES.items():
        made = _named("scheduling.k8s.io/v1", "PriorityClass", name)
        api.create({**made, "value": number, "globalDefault": name == default_priority})
    for name in CLASSES:
        made = _named("storage.k8s.io/v1", "StorageClass", name)
        made = {**made, "provisioner": "example.com/none"}
        api.create({**made, "allowVolumeExpansion": name == "expand"})
    runtime = {**_named("node.k8s.io/v1", "RuntimeClass", RUNTIME), "handler": RUNTIME}
    api.create({**runtime, "overhead": {"podFixed": OVERHEAD}})
    wait_for(lambda: api.create(_named("v1", "Namespace", _NAMESPACE)).code == 409)
    probe = {"containers": [{"name": "c", "image": "i"}], "priorityClassName": ""}
    for name in PRIORITIES:
        pod = {**_named("v1", "Pod", "probe"), "spec": {**probe, "priorityClassName": name}}
        # The priority plugin knows it, independent of quotas.
        wait_for(lambda pod=pod: "PriorityClass" not in _text(api, pod))  # type: ignore[misc]


def _text(api: ApiClient, pod: dict[str, Any]) -> str:
    message = api.create(pod, _NAMESPACE, dry=True).message
    return "" if "insufficient quota" in message else message


def _named(version: str, kind: str, name: str) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}}


class Barrier:
    """Waits until the API server's plugins see every policy written before."""

    def __init__(self, api: ApiClient) -> None:
        self._api = api

    def wait(self) -> None:
        """Write one more policy of each kind, and wait for its effect."""
        number = str(next(_NUMBERS))
        self._write_quota(number)
        self._write_range(number)
        config = _named("v1", "ConfigMap", "probe")
        wait_for(lambda: f"configmaps={number}" in self._said(config).rpartition("limited")[2])
        claim = _named("v1", "PersistentVolumeClaim", "probe")
        storage = {"requests": {"storage": "1Ti"}}
        claim["spec"] = {"accessModes": ["ReadWriteOnce"], "resources": storage}
        wait_for(lambda: f"is {number}Mi," in self._said(claim))

    def _said(self, manifest: dict[str, Any]) -> str:
        return self._api.create(manifest, _NAMESPACE, dry=True).message

    def _write_quota(self, number: str) -> None:
        quota = _named("v1", "ResourceQuota", "sentinel")
        hard = {"count/configmaps": number}
        quota["spec"], quota["status"] = {"hard": hard}, {"hard": hard, "used": hard}
        self._write(quota)
        self._api.replace(quota, _NAMESPACE, sub="status")

    def _write_range(self, number: str) -> None:
        limits = [{"type": "PersistentVolumeClaim", "max": {"storage": f"{number}Mi"}}]
        self._write({**_named("v1", "LimitRange", "sentinel"), "spec": {"limits": limits}})

    def _write(self, manifest: dict[str, Any]) -> None:
        if self._api.create(manifest, _NAMESPACE).code == 409:
            self._api.replace(manifest, _NAMESPACE)


@dataclass
class World:
    """One namespace: older objects, and the policies that the API server accepted.

    ``drawn`` contains the older objects as their users wrote them, ``before`` as they are stored.
    """

    api: ApiClient
    name: str
    drawn: dict[str, dict[str, Any]] = field(default_factory=dict)
    before: dict[str, dict[str, Any]] = field(default_factory=dict)
    policies: list[dict[str, Any]] = field(default_factory=list)
    refused: list[tuple[dict[str, Any], Answer]] = field(default_factory=list)

    def make(self, policies: list[dict[str, Any]], before: list[dict[str, Any]]) -> None:
        """Fill the namespace, without the objects that the API server rejects."""
        self.api.create(_named("v1", "Namespace", self.name))
        for manifest in before:
            self._make_before(manifest)
        for policy in policies:
            self._make_policy(policy)

    def _make_before(self, manifest: dict[str, Any]) -> None:
        answer = self.api.create(manifest, self.name)
        if not answer.is_allowed:
            return
        stored = answer.body
        if "status" in manifest:
            stored["status"] = manifest["status"]
            answer = self.api.replace(stored, self.name, sub="status")
            if not answer.is_allowed:
                return
            stored = answer.body
        self.before[stored["kind"]] = stored

    def _make_policy(self, policy: dict[str, Any]) -> None:
        answer = self.api.create(policy, self.name)
        if not answer.is_allowed:
            self.refused.append((policy, answer))
            return
        made = copy.deepcopy(policy)
        if made["kind"] == "ResourceQuota" and made["status"]["hard"]:
            filled = {**answer.body, "status": made["status"]}
            if not self.api.replace(filled, self.name, sub="status").is_allowed:
                # An amount that no status may have: the quota stays unchanged.
                made["status"] = {"hard": {}, "used": {}}
        self.policies.append(made)

    def placed(self, case: Case) -> Case | None:
        """A case as the engine reads it here; None if its object could not be created."""
        if case["operation"] == "CREATE":
            old, new = None, case["posted"]
        else:
            old = self.before.get(case["before"]["kind"])
            if old is None:
                return None
            new = changed(old, case["changes"])
        request = _request(self.name, case, new, old)
        return {**case, "policies": self.policies, "phase": "both", "request": request}

    def ask(self, case: Case) -> tuple[Case, Observed] | None:
        """Evaluate one case; returns it as the engine reads it, and the API server's answer.

        None if its object could not be created.
        """
        placed = self.placed(case)
        if placed is None:
            return None
        placed["policies"] = copy.deepcopy(self.policies)
        new, sub = placed["request"]["object"], case.get("subResource", "")
        if case["operation"] == "CREATE":
            answer = self.api.create(new, self.name, dry=case["dryRun"])
            _note_name(new["metadata"], answer)
        else:
            answer = self.api.replace(new, self.name, sub=sub, dry=True)
        used = None if case["dryRun"] else self._read_used()
        stored = answer.body if answer.is_allowed else {}
        return placed, Observed(answer.code, answer.message, stored, used)

    def _read_used(self) -> dict[str, dict[str, str]]:
        """Read the used amounts, from which the next case starts."""
        found = self.api.read("ResourceQuota", self.name).body["items"]
        by_name = {quota["metadata"]["name"]: quota.get("status", {}) for quota in found}
        for policy in self.policies:
            if policy["kind"] == "ResourceQuota":
                stored = by_name[policy["metadata"]["name"]]
                # Empty maps are not written: here they distinguish an empty status from none.
                policy["status"] = {"hard": {}, "used": {}, **stored}
        return {name: status.get("used", {}) for name, status in by_name.items()}


def _note_name(metadata: dict[str, Any], answer: Answer) -> None:
    """Store the generated name of an object: the plugins run after its generation."""
    parts = (answer.body.get("metadata"), answer.body.get("details"))
    made = next((part["name"] for part in parts if part and part.get("name")), "")
    if "generateName" in metadata and made:
        metadata["name"] = made


def changed(stored: dict[str, Any], changes: list[list[Any]]) -> dict[str, Any]:
    """A copy of the object with values set at their paths."""
    found = copy.deepcopy(stored)
    for path, value in changes:
        target = found
        for part in path[:-1]:
            target = target[part] if isinstance(part, int) else target.setdefault(part, {})
        target[path[-1]] = value
    return found


def _request(
    namespace: str, case: Case, new: dict[str, Any], old: dict[str, Any] | None
) -> dict[str, Any]:
    placed = {**new, "metadata": {**new["metadata"], "namespace": namespace}}
    found = {
        "operation": case["operation"],
        "namespace": namespace,
        "object": placed,
        "dryRun": case["dryRun"],
    }
    if old is not None:
        found["oldObject"] = old
    if case.get("subResource"):
        found["subResource"] = case["subResource"]
    return found
