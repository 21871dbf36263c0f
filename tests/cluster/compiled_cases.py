"""Random policies, compiled for a live API server, and requests that server and engine answer.

The API server's own plugins are off, so that only compiled policies refuse. One seed determines all
policies and requests. Answers of the API's own validation, which comes first, are counted apart.
"""

from __future__ import annotations

import collections
import itertools
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from engine import metadata_policy
from engine.chain import admit
from engine.chain.mutation import default_object
from engine.compiled import compile_limit_range, compile_metadata_policy
from engine.metadata_policy import PodMetadata, decode_metadata_policy, validate_metadata_policy
from engine.policy import ENFORCEMENT_ANNOTATION, LimitRange
from engine.policy_manifests import decode_policy
from engine.request import Phase
from engine.request_json import complete_request
from tests.cluster.case_generator import CaseGenerator, Setting
from tests.cluster.cases import draw_before
from tests.cluster.evaluation import as_seen
from tests.cluster.rules import draw_range
from tests.cluster.worlds import World
from tests.processes import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from engine.compiled import CompiledPolicy
    from engine.decision import Decision
    from engine.policy import PolicySet
    from tests.cluster.api_client import ApiClient
    from tests.cluster.cases import Case

SENTINEL: Final = "compiled-sentinel"
_NUMBERS: Final = itertools.count(1)
_QUESTIONS: Final = 40
_BATCH: Final = 25
_THREADS: Final = 6
_SETTING: Final = Setting([], "")
_SHARES: Final = {
    ("CREATE", "pod"): 60,
    ("CREATE", "claim"): 15,
    ("UPDATE", "resize"): 12,
    ("UPDATE", "claim"): 9,
    ("UPDATE", "pod"): 4,
}
_KEYS: Final = ("team", "app.kubernetes.io/name", "tier", "x")
_VALUES: Final = ("a", "b", "c", "")
_NOTES: Final = ("note", "example.com/Note", "x")
_TEXTS: Final = ("a", "", 'say "hi"\\', "tab\tline\nend", "größe ☃ 🙂", "{}[](),'", "\u2028")
_KINDS: Final = ("ConfigMap", "Secret", "Service", "ResourceQuota", "LimitRange")
NO_FIGURE: Final = ("is above it", "is below it")
"""Words of compiled messages where the engine shows a figure that CEL cannot print."""
_OF_BOUNDS: Final = ("MinConstraint", "MaxConstraint", "MaxLimitRequestRatioConstraint")


class Difference(NamedTuple):
    """A request that API server and engine answer differently."""

    policy: Any
    request: Any
    server: str
    engine: str


@dataclass
class Tally:
    """The counts of a run."""

    cases: int = 0
    verdicts: collections.Counter[str] = field(default_factory=collections.Counter)
    messages: collections.Counter[str] = field(default_factory=collections.Counter)
    apart: collections.Counter[str] = field(default_factory=collections.Counter)
    missing: collections.Counter[str] = field(default_factory=collections.Counter)
    differences: list[Difference] = field(default_factory=list)

    def add(self, kind: str, difference: Difference, texts: Sequence[str], answer: Any) -> None:
        """Count one request, with the engine's texts for its refusal and the server's answer."""
        self.cases += 1
        is_ours = "denied request: " in answer.message
        if not answer.is_allowed and not is_ours:
            self.apart[f"{kind}: {answer.code}"] += 1
            return
        self.verdicts[f"{kind}: {'refused' if is_ours else 'allowed'}"] += 1
        if is_ours != bool(texts) or (is_ours and answer.code != 403):
            self.differences.append(difference)
        if is_ours and texts:
            said = answer.message.partition("denied request: ")[2]
            distinct = list(dict.fromkeys(texts))
            wanted = distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"
            if said == wanted:
                self.messages["equal"] += 1
            elif any(words in said for words in NO_FIGURE):
                self.messages["without a figure"] += 1
            else:
                self.messages[f"other: {said!r} instead of {wanted!r}"] += 1


class CheckedCases(CaseGenerator):
    """Draws cases close to the bounds of ranges that set no defaults."""

    def predict(self, case: Case) -> Decision | None:
        """The engine's decision about the object as its user writes it, with API defaults."""
        placed = self.world.placed({**case, "dryRun": False})
        return None if placed is None else decide(placed, self.policies)


def decide(placed: Case, policies: PolicySet) -> Decision:
    """Judge a case as the validating pass does."""
    request = complete_request(as_seen(placed)["request"])
    defaulted = default_object(request, request.object or {}, policies.version)
    decision = admit(request.with_object(defaulted), policies, phase=Phase.VALIDATE)
    if not decision.observed:
        return decision
    # The test has the API server refuse where the policy would only warn.
    violations = decision.violations + decision.observed
    return replace(decision, allowed=False, code=decision.code or 403, violations=violations)


def run_ranges(api: ApiClient, seed: int, cases: int) -> Tally:
    """Compare compiled ranges with the engine, a batch of namespaces at a time."""
    tally, batches = Tally(), itertools.count(1)
    with ThreadPoolExecutor(_THREADS) as threads:
        while tally.cases < cases:
            batch = next(batches)
            seeds = [(f"ranges/{seed}/{batch}/{i}", f"r-{seed}-{batch}-{i}") for i in range(_BATCH)]
            made = [each for each in threads.map(lambda s: _make_range(api, *s), seeds) if each]
            wait_until_enforced(api)
            for found in threads.map(lambda each: list(_ask_range(*each)), made):
                for kind, difference, texts, answer in found:
                    tally.add(kind, difference, texts, answer)
            for generator, compiled in made:
                tally.missing.update(_named(compiled))
                remove(api, compiled)
                api.delete("Namespace", "", generator.world.name)
    return tally


def _make_range(api: ApiClient, seed: str, name: str) -> tuple[CheckedCases, CompiledPolicy] | None:
    random = Random(seed)  # noqa: S311 - repeatable on purpose
    world, before = World(api, name), draw_before(random)
    world.drawn = before
    manifest = draw_range(random, "lr")
    if random.random() < 0.25:
        # Judged as if it had set its defaults.
        manifest["metadata"]["annotations"] = {ENFORCEMENT_ANNOTATION: "warn"}
    world.make([manifest], list(before.values()))
    if not world.policies:
        return None
    metadata = {**manifest["metadata"], "namespace": name}
    limit_range = decode_policy({**world.policies[0], "metadata": metadata}, "LimitRange")
    assert isinstance(limit_range, LimitRange)
    compiled = compile_limit_range(limit_range)
    write(api, compiled)
    return CheckedCases(world, random, _SETTING, _SHARES), compiled


def _ask_range(
    generator: CheckedCases, _compiled: CompiledPolicy
) -> Iterator[tuple[str, Difference, list[str], Any]]:
    asked = 0
    while asked < _QUESTIONS and (case := generator.next_case()) is not None:
        subject: dict[str, Any] = case.get("posted") or case["before"]
        asked += 1
        found = generator.world.ask({**case, "dryRun": True})
        assert found is not None
        placed, observed = found
        decision = decide(placed, generator.policies)
        refusals = [v.message for v in decision.violations if v.reason in _OF_BOUNDS]
        kind = f"{case['operation']} {case.get('subResource') or subject['kind']}"
        request = placed["request"]
        texts = f"{observed.code} {observed.message}", f"{decision.message or 'allowed'}"
        yield kind, Difference(generator.world.policies, request, *texts), refusals, observed


def run_metadata(api: ApiClient, seed: int, cases: int) -> Tally:
    """Compare compiled metadata policies with the engine."""
    tally, batches = Tally(), itertools.count(1)
    with ThreadPoolExecutor(_THREADS) as threads:
        while tally.cases < cases:
            batch = next(batches)
            drawn = [(f"rules/{seed}/{batch}/{i}", f"m-{seed}-{batch}-{i}") for i in range(_BATCH)]
            made = list(threads.map(lambda s: _make_rules(api, *s), drawn))
            wait_until_enforced(api)
            for found in threads.map(lambda each: list(_ask_rules(api, *each)), made):
                for kind, difference, texts, answer in found:
                    tally.add(kind, difference, texts, answer)
            for policy, compiled, *_ in made:
                tally.missing.update(_named(compiled))
                remove(api, compiled)
                api.delete("Namespace", "", policy["metadata"]["namespace"])
    return tally


def _make_rules(
    api: ApiClient, seed: str, name: str
) -> tuple[dict[str, Any], CompiledPolicy, list[dict[str, Any]], Random]:
    random = Random(seed)  # noqa: S311 - repeatable on purpose
    api.create(_object("Namespace", name))
    stored = [
        api.create(_drawn_object(random, kind, f"old-{i}"), name).body
        for i, kind in enumerate(random.choices(_KINDS[:3], k=4))
    ]
    manifest = _draw_rules(random, name)
    policy = decode_metadata_policy(manifest)
    assert validate_metadata_policy(policy) == ()
    compiled = compile_metadata_policy(policy)
    write(api, compiled)
    return manifest, compiled, stored, random


def _ask_rules(
    api: ApiClient,
    manifest: dict[str, Any],
    compiled: CompiledPolicy,
    stored: list[dict[str, Any]],
    random: Random,
) -> Iterator[tuple[str, Difference, list[str], Any]]:
    policy = decode_metadata_policy(manifest)
    skipped = {each.field for each in compiled.not_expressible}
    namespace = policy.namespace
    for number in range(_QUESTIONS):
        request: dict[str, Any] = {"operation": "CREATE", "namespace": namespace}
        if random.random() < 0.4:
            old = random.choice(stored)
            new = {**old, "metadata": {**old["metadata"], **_draw_metadata(random)}}
            request |= {"operation": "UPDATE", "oldObject": old, "object": new}
            answer = api.replace(new, namespace, dry=True)
        else:
            new = _drawn_object(random, random.choice(_KINDS), f"new-{number}")
            new["metadata"]["namespace"] = namespace
            request["object"] = new
            answer = api.create(new, namespace, dry=True)
        asked = complete_request(request)
        texts = []
        if not metadata_policy.reason_not_applicable(asked):
            found = metadata_policy.apply(asked, (policy,), PodMetadata.of(new), new)
            texts = [v.message for v in found.violations if f"spec.rules[{v.rule}]" not in skipped]
        kind = f"{request['operation']} {new['kind']}"
        server, engine = f"{answer.code} {answer.message}", str(texts)
        yield kind, Difference(manifest, request, server, engine), texts, answer


def _draw_rules(random: Random, namespace: str) -> dict[str, Any]:
    rules = [_draw_rule(random) for _ in range(random.choice((1, 1, 2, 3, 5)))]
    spec = {"rules": rules, "ratchet": random.random() < 0.5, "strict": random.random() < 0.5}
    metadata = {"name": "mp", "namespace": namespace}
    return {"kind": "MetadataPolicy", "metadata": metadata, "spec": spec}


def _draw_rule(random: Random) -> dict[str, Any]:
    predicate = {}
    if random.random() < 0.8:
        predicate["labelSelector"] = _draw_selector(random, _KEYS, _VALUES)
    if random.random() < 0.5:
        predicate["annotationSelector"] = _draw_selector(random, _NOTES, _TEXTS)
    action: dict[str, Any] = {"reject": True}
    if random.random() < 0.15:
        action = {"updatedLabels": {random.choice(_KEYS): "a"}}
    return {"policyPredicate": predicate, "policyAction": action}


def _draw_selector(random: Random, keys: Sequence[str], values: Sequence[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if random.random() < 0.5:
        found["matchLabels"] = {random.choice(keys): random.choice(values)}
    if random.random() < 0.7:
        found["matchExpressions"] = [
            _draw_expression(random, keys, values) for _ in range(random.choice((1, 1, 2)))
        ]
    return found


def _draw_expression(random: Random, keys: Sequence[str], values: Sequence[str]) -> dict[str, Any]:
    operator = random.choice(("In", "NotIn", "Exists", "DoesNotExist"))
    entry: dict[str, Any] = {"key": random.choice(keys), "operator": operator}
    if operator in ("In", "NotIn"):
        entry["values"] = random.sample(values, random.randint(1, 3))
    return entry


def _draw_metadata(random: Random) -> dict[str, dict[str, str]]:
    labels = {key: random.choice(_VALUES) for key in _KEYS if random.random() < 0.5}
    notes = {key: random.choice(_TEXTS) for key in _NOTES if random.random() < 0.5}
    return {
        name: given
        for name, given in (("labels", labels), ("annotations", notes))
        if given or random.random() < 0.5
    }


def _drawn_object(random: Random, kind: str, name: str) -> dict[str, Any]:
    made = _object(kind, name)
    made["metadata"] |= _draw_metadata(random)
    if kind == "Service":
        made["spec"] = {"ports": [{"port": 80}]}
    return made


def _object(kind: str, name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}}


def write(api: ApiClient, compiled: CompiledPolicy) -> None:
    """Create the manifests of a policy, refusing whatever its mode."""
    for manifest in compiled.manifests:
        spec = dict(manifest["spec"])
        if "validationActions" in spec:
            spec["validationActions"] = ["Deny"]
        answer = api.create({**manifest, "spec": spec})
        assert answer.is_allowed, (answer.message, manifest)


def remove(api: ApiClient, compiled: CompiledPolicy) -> None:
    """Delete the manifests of a policy."""
    for manifest in compiled.manifests:
        api.delete(manifest["kind"], "", manifest["metadata"]["name"])


def wait_until_enforced(api: ApiClient) -> None:
    """Wait until the API server enforces every policy written before.

    It reads policies and bindings in the order of their writes, all at once: once it enforces one
    more policy, it enforces all earlier ones.
    """
    name = f"sentinel-{next(_NUMBERS)}"
    rule = {"policyPredicate": {}, "policyAction": {"reject": True}}
    manifest = {"metadata": {"name": name, "namespace": SENTINEL}, "spec": {"rules": [rule]}}
    api.create(_object("Namespace", SENTINEL))
    compiled = compile_metadata_policy(decode_metadata_policy(manifest))
    write(api, compiled)
    probe = _object("ConfigMap", "probe")
    wait_for(lambda: f"{name} rule 0" in api.create(probe, SENTINEL, dry=True).message)
    remove(api, compiled)


def _named(compiled: CompiledPolicy) -> list[str]:
    return [each.why for each in compiled.not_expressible]
