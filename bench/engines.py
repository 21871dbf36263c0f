"""The engine in one process, beside reading the body and beside other engines.

`python -m bench.engines ROUNDS` prints microseconds for each subject and round as JSON. Other
engines are measured where they are installed (`make bench-peers`); what is missing says so.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from typing import TYPE_CHECKING, Any, Final

import django
import orjson

from bench import review
from bench.machine import RESULTS, ROOT
from engine import chain
from engine.limit_range import decode_limit_range
from engine.metadata_policy import decode_metadata_policy
from engine.policy import PolicySet
from engine.request import Phase
from engine.resource_quota import decode_resource_quota

if TYPE_CHECKING:
    from collections.abc import Callable

    Decide = Callable[[bytes], Any]

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
django.setup()

from admission.alike import read_review  # noqa: E402 - Django must be set up first
from admission.wire.review import dump_response, render_response  # noqa: E402

SLICE: Final = 0.15  # seconds that each subject is measured in each round
CHUNK: Final = 10
FEWEST: Final = 3  # chunks
NAMESPACE: Final = review.SPREAD[0]
_LIST: Final = (
    "request.object.spec.%s.all(c, has(c.resources.limits.cpu) && has(c.resources.requests.cpu)"
    " && has(c.resources.limits.memory) && has(c.resources.requests.memory)"
    " && (c.resources.limits.cpu.endsWith('m') || int(c.resources.limits.cpu) <= 4))"
)
# The cheapest form that still sees what must be refused: this CEL has no quantities.
CEL: Final = " && ".join(
    ["has(request.object.metadata.labels.team)", _LIST % "containers", _LIST % "initContainers"]
)
# A rule refuses at once; a maximum is the validating call's matter.
VERDICTS: Final = {"engine, mutate": [True, False, True]}


def policies() -> PolicySet:
    """What decides in one seeded namespace, its quota unused."""
    quota = review.quota(NAMESPACE)
    hard = quota["spec"]["hard"]
    quota["status"] = {"hard": hard, "used": dict.fromkeys(hard, "0")}
    return PolicySet(
        cluster=review.CLUSTER,
        namespace=NAMESPACE,
        limit_ranges=(decode_limit_range(review.limit_range(NAMESPACE)),),
        metadata_policies=(decode_metadata_policy(review.metadata_policy(NAMESPACE)),),
        resource_quotas=(decode_resource_quota(quota),),
    )


def decision(phase: Phase) -> Decide:
    """One whole decision of the product's engine: bytes to bytes."""
    known = policies()

    def decide(body: bytes) -> bytes:
        asked, _, alike = read_review(body)
        made = chain.admit(asked, known, phase=phase, alike=alike)
        answer = render_response(
            made, asked.uid, phase=phase, decision_id="0" * 16, external_url=""
        )
        return dump_response(answer)

    return decide


def cel_decision() -> Decide:
    """The same checks as one validation expression, without an answer's bytes."""
    import cel  # noqa: PLC0415 - optional

    program = cel.compile(CEL)
    return lambda body: bool(program.execute(orjson.loads(body)))


def rego_decision() -> Decide:
    """The same checks as a compiled Rego bundle, without an answer's bytes."""
    from regopy import Interpreter  # noqa: PLC0415 - optional

    interpreter = Interpreter()
    interpreter.add_module("policy", (ROOT / "bench/peers/policy.rego").read_text("utf-8"))
    bundle = interpreter.build("x = data.system.main")

    def decide(body: bytes) -> Any:
        interpreter.set_input_term(body.decode())
        return interpreter.query_bundle(bundle)

    return decide


def check(name: str, decide: Decide) -> None:
    """See that an engine allows and refuses what it must: without rules it would be fast."""
    reviews = (review.template(), *review.refused().values())
    found = [_is_allowed(decide(review.fresh(NAMESPACE, each))) for each in reviews]
    if found != VERDICTS.get(name, [True, False, False]):
        raise SystemExit(f"{name}: the verdicts are {found}")


def _is_allowed(answer: Any) -> bool:
    if isinstance(answer, bool):
        return answer
    # Rego's node lives in its output: asked for any later, the process ends.
    text = answer if isinstance(answer, bytes) else str(answer.binding("x"))
    return bool(orjson.loads(text)["response"]["allowed"])


def microseconds(call: Decide) -> float:
    """CPU time of a call over one slice, each with a body of its own; the median of its chunks."""
    bodies = [review.fresh(NAMESPACE) for _ in range(CHUNK)]
    found, begin = [], time.process_time()
    while (last := time.process_time()) - begin < SLICE or len(found) < FEWEST:
        for body in bodies:
            call(body)
        found.append((time.process_time() - last) / CHUNK * 1e6)
    return statistics.median(found)


def main(rounds: int) -> dict[str, Any]:
    """Measure all subjects by turns."""
    sys.path.append(str(RESULTS / "python"))  # where `make bench-peers` puts other engines
    deciding = {
        "engine, validate": decision(Phase.VALIDATE),
        "engine, mutate": decision(Phase.MUTATE),
    }
    skipped = {}
    for name, make in {"cel": cel_decision, "regopy": rego_decision}.items():
        try:
            deciding[name] = make()
        except ImportError as error:
            skipped[name] = f"{error}; run: make bench-peers"
    found = {"json.loads": json.loads, "orjson.loads": orjson.loads, **deciding}
    for name, call in deciding.items():
        check(name, call)
    for call in found.values():
        microseconds(call)
    measured = [{name: microseconds(c) for name, c in found.items()} for _ in range(rounds)]
    return {"rounds": measured, "skipped": skipped}


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]))))
