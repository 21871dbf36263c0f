"""Random metadata policies that set metadata: a live API server sets what the engine sets.

Each question is asked of the API server alone, of the portal after it, and every other one of the
API server again after the portal. Some policies are off, or only warn.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from engine import metadata_policy
from engine.chain import admit
from engine.compiled import compile_metadata_policy
from engine.metadata_policy import PodMetadata, decode_metadata_policy, validate_metadata_policy
from engine.policy import (
    ENFORCEMENT_ANNOTATION,
    InAPIServer,
    MetadataPolicy,
    PolicyAction,
    PolicySet,
)
from engine.policy_manifests import decode_policy
from engine.request import Phase
from engine.request_json import complete_request
from tests.cluster.compiled_cases import Difference, Tally, remove, wait_until_enforced
from tests.processes import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from engine.compiled import CompiledPolicy
    from engine.request import AdmissionRequest
    from tests.cluster.api_client import Answer, ApiClient

    Manifest = dict[str, Any]
    Metadata = dict[str, dict[str, str]]

_SENTINEL: Final = "updates-sentinel"
_QUESTIONS: Final = 40
_BATCH: Final = 25
_THREADS: Final = 6
_NUMBERS: Final = itertools.count(1)
_SELECTED: Final = ("team", "app.kubernetes.io/name", "tier", "x")
_SET: Final = ("example.com/center", "owner", "a.b-c_d", "tier", "x", "team")
_VALUES: Final = ("a", "b", "c", "")
_NOTES: Final = ("note", "example.com/Note", "x", "A.b/c_d")
_TEXTS: Final = (
    "a",
    "",
    'say "hi"\\',
    "tab\tline\nend",
    "größe ☃ 🙂",
    "{}[](),'",
    "\u2028",
    "\x00",
)
_KINDS: Final = ("ConfigMap", "ConfigMap", "Secret", "Service", "Pod", "ResourceQuota")
_STORED: Final = ("ConfigMap", "Secret", "Service")
_PART: Final = re.compile(r"spec\.rules\[(\d+)](?:\.policyAction\.(\w+?)(?:\[(.+)])?)?")
_COLUMNS: Final = {"updatedLabels": "updated_labels", "updatedAnnotations": "updated_annotations"}


class Drawn(NamedTuple):
    """A namespace with its policies, as they are and as far as the API server enforces them."""

    namespace: str
    manifests: list[Manifest]
    policies: tuple[MetadataPolicy, ...]
    expressible: tuple[MetadataPolicy, ...]
    compiled: list[CompiledPolicy]
    stored: list[Manifest]
    random: Random


def run_updates(api: ApiClient, seed: int, cases: int) -> Tally:
    """Compare what the API server and the engine set, a batch of namespaces at a time."""
    tally, batches = Tally(), itertools.count(1)
    with ThreadPoolExecutor(_THREADS) as threads:
        while tally.cases < cases:
            batch = next(batches)
            names = [f"u-{seed}-{batch}-{number}" for number in range(_BATCH)]
            made = list(threads.map(lambda name: _make(api, name), names))
            wait_until_enforced(api)
            wait_until_set(api)
            for kind, outcome, difference in itertools.chain.from_iterable(
                threads.map(lambda each: list(_ask(api, each)), made)
            ):
                tally.cases += 1
                tally.verdicts[f"{kind}: {outcome}"] += 1
                tally.differences += [difference] if difference else []
            for each in made:
                for compiled in each.compiled:
                    tally.missing.update(part.why for part in compiled.not_expressible)
                    remove(api, compiled)
                api.delete("Namespace", "", each.namespace)
    return tally


def wait_until_set(api: ApiClient) -> None:
    """Wait until the API server runs every mutating policy written before."""
    name = f"sentinel-{next(_NUMBERS)}"
    rule = {"policyPredicate": {}, "policyAction": {"updatedLabels": {"by": name}}}
    metadata = {"name": name, "namespace": _SENTINEL}
    api.create(_object("Namespace", _SENTINEL))
    compiled = compile_metadata_policy(
        decode_metadata_policy({"metadata": metadata, "spec": {"rules": [rule]}})
    )
    write(api, compiled)
    probe = _object("ConfigMap", "probe")
    wait_for(lambda: _maps(api.create(probe, _SENTINEL, dry=True).body)["labels"] == {"by": name})
    remove(api, compiled)


def write(api: ApiClient, compiled: CompiledPolicy) -> None:
    """Create the manifests of a policy, which the API server stores as they are."""
    for manifest in compiled.manifests:
        answer = api.create(dict(manifest))
        assert answer.is_allowed, answer.message[:200] + answer.message[-600:]
        # Otherwise the sync would write it again and again.
        assert answer.body["spec"] == manifest["spec"]


def _make(api: ApiClient, name: str) -> Drawn:
    random = Random(name)  # noqa: S311 - repeatable on purpose
    api.create(_object("Namespace", name))
    stored = []
    for number, kind in enumerate(random.choices(_STORED, k=4)):
        old = _draw_object(random, kind, f"old-{number}")
        if number == 0:
            old["metadata"]["finalizers"] = ["example.com/keep"]
        answer = api.create(old, name)
        assert answer.is_allowed, answer.message
        stored.append(answer.body)
    # The first one is being deleted from now on.
    api.delete(stored[0]["kind"], name, "old-0")
    stored[0] = api.read(stored[0]["kind"], name, "old-0").body
    manifests = [
        _draw_policy(random, name, f"mp-{number}") for number in range(random.choice((1, 1, 2, 3)))
    ]
    policies = tuple(_decode(manifest) for manifest in manifests)
    compiled = [
        compile_metadata_policy(each, each.in_api_server, beside=policies) for each in policies
    ]
    for each in compiled:
        write(api, each)
    expressible = [_expressible(*pair) for pair in zip(policies, compiled, strict=True)]
    kept = tuple(each for each in expressible if each.in_api_server is InAPIServer.ENFORCE)
    return Drawn(name, manifests, policies, kept, compiled, stored, random)


def _decode(manifest: Manifest) -> MetadataPolicy:
    policy = decode_policy(manifest, "MetadataPolicy")
    assert isinstance(policy, MetadataPolicy)
    assert validate_metadata_policy(policy) == ()
    return policy


def _expressible(policy: MetadataPolicy, compiled: CompiledPolicy) -> MetadataPolicy:
    """The policy without the parts that are named as not expressible."""
    rules = list(policy.rules)
    for part in compiled.not_expressible:
        found = _PART.fullmatch(part.field)
        assert found, part.field
        index, name, key = int(found[1]), found[2], found[3]
        action = rules[index].policy_action
        if name is None:
            action = PolicyAction()
        else:
            column = _COLUMNS[name]
            left = {k: v for k, v in getattr(action, column).items() if key not in (None, k)}
            changed: Any = {column: left}
            action = dataclasses.replace(action, **changed)
        rules[index] = dataclasses.replace(rules[index], policy_action=action)
    return dataclasses.replace(policy, rules=tuple(rules))


def _ask(api: ApiClient, drawn: Drawn) -> Iterator[tuple[str, str, Difference | None]]:
    for number in range(_QUESTIONS):
        request, answer = _question(api, drawn, number)
        kind = f"{request['operation']} {request['object']['kind']}"
        asked = complete_request(request)
        refused, wanted = _engine_alone(asked, drawn.expressible)
        found: Any = _maps(answer.body) if answer.is_allowed else answer.message
        difference = Difference(drawn.manifests, request, str(found), str((refused, wanted)))
        if not answer.is_allowed:
            is_ours = refused and "denied request: " in answer.message
            yield kind, "refused", None if is_ours else difference
            continue
        outcome = "unchanged" if wanted == _maps(request["object"]) else "set"
        if refused or found != wanted:
            yield kind, outcome, difference
            continue
        yield kind, outcome, _afterwards(api, drawn, asked, answer.body)


def _afterwards(
    api: ApiClient, drawn: Drawn, asked: AdmissionRequest, body: Manifest
) -> Difference | None:
    """Compare the portal alone with the portal after the API server, and before it again."""
    given = dict(asked.object or {})
    changed = {**given, "metadata": {**given["metadata"], **_maps(body)}}
    policies = PolicySet(metadata_policies=drawn.policies)
    alone = admit(asked, policies, phase=Phase.MUTATE)
    after = admit(asked.with_object(changed), policies, phase=Phase.MUTATE)
    told = [
        (
            *(each.allowed, each.message, each.warnings, each.observed),
            # Nobody stores an object that is refused.
            _maps(each.object or {}) if each.allowed else None,
        )
        for each in (alone, after)
    ]
    if told[0] != told[1]:
        return Difference(drawn.manifests, asked, str(told[1]), str(told[0]))
    if alone.allowed and drawn.random.random() < 0.5:
        # The API server runs its policies once more on what a webhook has changed.
        wanted = _maps(alone.object)
        final = {**given, "metadata": {**given["metadata"], **wanted}}
        again = _send(api, final, drawn.namespace, is_update=asked.old_object is not None)
        if not again.is_allowed or _maps(again.body) != wanted:
            return Difference(drawn.manifests, final, str(again), str(wanted))
    return None


def _engine_alone(
    asked: AdmissionRequest, policies: tuple[MetadataPolicy, ...]
) -> tuple[bool, Metadata]:
    given = asked.object or {}
    if metadata_policy.reason_not_applicable(asked):
        return False, _maps(given)
    found = metadata_policy.apply(asked, policies, PodMetadata.of(given), given)
    return bool(found.violations), _maps(found.object)


def _question(api: ApiClient, drawn: Drawn, number: int) -> tuple[Manifest, Answer]:
    random, namespace = drawn.random, drawn.namespace
    request: Manifest = {"operation": "CREATE", "namespace": namespace}
    is_update = random.random() < 0.4
    if is_update:
        old = random.choice(drawn.stored)
        kept = {k: v for k, v in old["metadata"].items() if k not in ("labels", "annotations")}
        new = {**old, "metadata": {**kept, **_draw_metadata(random)}}
        request |= {"operation": "UPDATE", "oldObject": old}
    else:
        new = _draw_object(random, random.choice(_KINDS), f"new-{number}")
        new["metadata"]["namespace"] = namespace
    return request | {"object": new}, _send(api, new, namespace, is_update=is_update)


def _send(api: ApiClient, new: Manifest, namespace: str, *, is_update: bool) -> Answer:
    if is_update:
        return api.replace(new, namespace, dry=True)
    return api.create(new, namespace, dry=True)


def _maps(obj: Any) -> Metadata:
    metadata = obj.get("metadata") or {}
    return {name: dict(metadata.get(name) or {}) for name in ("labels", "annotations")}


def _draw_policy(random: Random, namespace: str, name: str) -> Manifest:
    rules = [_draw_rule(random) for _ in range(random.choice((1, 2, 3, 4)))]
    mode = "off" if random.random() < 0.1 else "enforce"
    annotations = {"policy.gatehouse.dev/in-api-server": mode}
    if random.random() < 0.1:
        annotations[ENFORCEMENT_ANNOTATION] = random.choice(("warn", "audit"))
    return {
        "kind": "MetadataPolicy",
        "metadata": {"name": name, "namespace": namespace, "annotations": annotations},
        "spec": {"rules": rules},
    }


def _draw_rule(random: Random) -> Manifest:
    predicate: Manifest = {}
    if random.random() < 0.8:
        predicate["labelSelector"] = _draw_selector(random, _SELECTED, _VALUES)
    if random.random() < 0.4:
        predicate["annotationSelector"] = _draw_selector(random, _NOTES, _TEXTS)
    action: Manifest = {"reject": random.random() < 0.07}
    if random.random() < 0.8:
        keys = random.sample(_SET, random.choice((1, 1, 2)))
        action["updatedLabels"] = {key: random.choice(_VALUES) for key in keys}
    if random.random() < 0.5:
        action["updatedAnnotations"] = {random.choice(_NOTES): random.choice(_TEXTS)}
    return {"policyPredicate": predicate, "policyAction": action}


def _draw_selector(random: Random, keys: Sequence[str], values: Sequence[str]) -> Manifest:
    found: Manifest = {}
    if random.random() < 0.3:
        found["matchLabels"] = {random.choice(keys): random.choice(values)}
    if random.random() < 0.6:
        operator = random.choice(("In", "NotIn", "Exists", "DoesNotExist"))
        entry: Manifest = {"key": random.choice(keys), "operator": operator}
        if operator in ("In", "NotIn"):
            entry["values"] = random.sample(values, random.randint(1, 3))
        found["matchExpressions"] = [entry]
    return found


def _draw_metadata(random: Random) -> Manifest:
    keys = dict.fromkeys((*_SELECTED, *_SET))
    labels = {key: random.choice(_VALUES) for key in keys if random.random() < 0.4}
    notes = {key: random.choice(_TEXTS) for key in _NOTES if random.random() < 0.4}
    found: Manifest = {}
    for name, given in (("labels", labels), ("annotations", notes)):
        match random.randrange(8):
            case 0:
                continue
            case 1:
                found[name] = None
            case 2:
                found[name] = {}
            case _:
                found[name] = given
    return found


def _draw_object(random: Random, kind: str, name: str) -> Manifest:
    made = _object(kind, name)
    made["metadata"] |= _draw_metadata(random)
    if kind == "Service":
        made["spec"] = {"ports": [{"port": 80}]}
    if kind == "Pod":
        made["spec"] = {"containers": [{"name": "c", "image": "registry.invalid/app:1"}]}
    return made


def _object(kind: str, name: str) -> Manifest:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}}
