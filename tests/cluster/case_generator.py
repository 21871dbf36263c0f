"""Draws the requests of a namespace so that allowed and refused ones alternate, close to bounds.

Requests drawn at random are nearly all refused, and for the same few reasons. Here the engine
predicts each verdict: for each kind of request the wanted verdicts alternate, and many amounts are
moved to the last one that is allowed, or one unit beyond. This hides no error of the engine: where
its prediction is wrong, the API server's answer differs. The seed determines all requests.
"""

from __future__ import annotations

import collections
import copy
import itertools
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from engine.chain import admit
from engine.kubernetes_version import parse_version
from engine.pod import limit_range_totals, read_pod
from engine.policy import PolicySet
from engine.policy_manifests import build_policy_set
from engine.request import Phase
from engine.request_json import complete_request
from tests.cluster.amounts import PAGES, UNIT, spell, value
from tests.cluster.binaries import DEFAULT
from tests.cluster.cases import SHARES, draw_case
from tests.cluster.evaluation import as_seen
from tests.cluster.rules import bare, left_of, room_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from random import Random

    from engine.decision import Decision
    from tests.cluster.cases import Case
    from tests.cluster.worlds import World

_TRIES: Final = 10
_NARROW: Final = 0.6
"""Share of the cases with amounts that are moved to a bound."""
_PAIRS: Final = 2
_FORBIDDEN: Final = 403
_PORTS: Final = 6
Path = tuple[Any, ...]


class Setting(NamedTuple):
    """The policies that an API server adds to those of a namespace."""

    limited: list[dict[str, Any]]
    default_priority: str
    version: str = DEFAULT


class CaseGenerator:
    """Draws the cases of one namespace, of kinds with these shares."""

    def __init__(
        self,
        world: World,
        random: Random,
        setting: Setting,
        shares: Mapping[tuple[str, str], int] = SHARES,
    ) -> None:
        self.world, self._shares = world, shares
        self._random, self._setting = random, setting
        self.policies = PolicySet()
        self._turns: dict[tuple[str, str], bool] = {}
        self._hopeless: set[tuple[str, str, bool]] = set()
        self._reasons: collections.Counter[str] = collections.Counter()

    def next_case(self) -> Case | None:
        """The next case; None if all remaining kinds have only one verdict."""
        self.policies = build_policy_set(
            self.world.policies,
            self._setting.limited,
            namespace=self.world.name,
            version=parse_version(self._setting.version),
        )
        while kinds := {each: share for each, share in self._shares.items() if self._is_open(each)}:
            kind = self._random.choices(list(kinds), weights=list(kinds.values()))[0]
            wanted = self._turns[kind]
            found = self._allowed(*kind) if wanted else self._refused(*kind)
            if found is not None:
                self._turns[kind] = not wanted
                return found
            self._hopeless.add((*kind, wanted))
        return None

    def _is_open(self, kind: tuple[str, str]) -> bool:
        turn = self._turns.setdefault(kind, self._random.random() < 0.5)
        return (*kind, turn) not in self._hopeless

    def _allowed(self, operation: str, kind: str) -> Case | None:
        """An allowed case, sometimes exactly at a bound."""
        for case, decision in self._drawn(operation, kind, narrow=0.7):
            if decision.allowed:
                if self._random.random() < _NARROW / 2:
                    return next((at for at, _ in self._bounds_of(case, decision)), case)
                return case
        return None

    def _refused(self, operation: str, kind: str) -> Case | None:
        """A refused case: by one unit, or for the rarest reason so far."""
        found: list[tuple[int, Case, str]] = []
        narrowed = 2 if self._random.random() < _NARROW else 0
        for case, decision in self._drawn(operation, kind, narrow=0.7 if narrowed else 0.3):
            if not decision.allowed:
                reason = decision.violations[0].reason
                found.append((self._reasons[reason], case, reason))
                if not narrowed and (len(found) > 1 or not self._reasons[reason]):
                    break
            elif narrowed:
                narrowed -= 1
                over = next((over for _, over in self._bounds_of(case, decision)), None)
                if over is not None:
                    return over
        if not found:
            return None
        _, case, reason = min(found, key=lambda each: each[0])
        self._reasons[reason] += 1
        return case

    def _drawn(
        self, operation: str, kind: str, *, narrow: float
    ) -> Iterator[tuple[Case, Decision]]:
        """Some cases of a kind; ``narrow`` is the share of those within the available room."""
        before, room = self.world.drawn, room_of(self.world.policies)
        for _ in range(_TRIES):
            within = room if self._random.random() < narrow else None
            case = draw_case(self._random, operation, kind, before, within)
            decision = self.predict(case)
            if decision is not None:
                yield case, decision

    def predict(self, case: Case) -> Decision | None:
        """The engine's decision, including the charges of a dry run."""
        placed = self.world.placed({**case, "dryRun": False})
        if placed is None:
            return None
        seen = as_seen({**placed, "defaultPriority": self._setting.default_priority})
        request = complete_request(seen["request"])
        return admit(request, self.policies, phase=Phase.BOTH)

    def _bounds_of(self, case: Case, decision: Decision) -> Iterator[tuple[Case, Case]]:
        """An allowed case moved to a bound, and one unit beyond, where that bound refuses it."""
        pairs = [*self._moved(case, decision)]
        self._random.shuffle(pairs)
        for at, over in pairs[:_PAIRS]:
            allowed, refused = self.predict(at), self.predict(over)
            if allowed and refused and allowed.allowed and _is_by_policy(refused):
                yield {**at, "near": "at"}, {**over, "near": "over"}

    def _moved(self, case: Case, decision: Decision) -> Iterator[tuple[Case, Case]]:
        for path, name in _amounts_in(case):
            amount, unit = value(_get(case, path)), self._unit(name)
            for nano, sign in _targets(self.world.policies, name, amount, decision):
                if nano >= 0:
                    at = _put(case, path, spell(self._random, nano))
                    yield at, _put(case, path, spell(self._random, nano + sign * unit))
        ports = _ports_in(case)
        if ports:
            yield from self._more_ports(case, ports)

    def _unit(self, name: str) -> int:
        if name == PAGES:
            return 2 * 1024**2 * UNIT
        return 10**6 if name == "cpu" or self._random.random() < 0.1 else UNIT

    @staticmethod
    def _more_ports(case: Case, path: Path) -> Iterator[tuple[Case, Case]]:
        """Pairs of one more port each; the caller finds the bound by trying them."""
        forms = [
            _put(case, path, [{"name": f"p{i}", "port": 80 + i} for i in range(many)])
            for many in range(len(_get(case, path)), _PORTS + 1)
        ]
        yield from itertools.pairwise(forms)


def _is_by_policy(decision: Decision) -> bool:
    return not decision.allowed and decision.code == _FORBIDDEN


def _amounts_in(case: Case) -> list[tuple[Path, str]]:
    """The paths of a case's amounts, and their resources."""
    if "posted" not in case:
        changes = enumerate(case["changes"])
        return [(("changes", i, 1), path[-1]) for i, (path, _) in changes if "resources" in path]
    spec = case["posted"].get("spec", {})
    places: list[Path] = [("posted", "spec")] if spec else []
    for group in ("containers", "initContainers"):
        places += [("posted", "spec", group, i) for i in range(len(spec.get(group, ())))]
    found = []
    for place in places:
        for side, amounts in _get(case, place).get("resources", {}).items():
            found += [((*place, "resources", side, name), name) for name in amounts]
    return found


def _ports_in(case: Case) -> Path:
    """The path of a case's ports; empty if it has none."""
    if "posted" in case:
        return ("posted", "spec", "ports") if case["posted"]["kind"] == "Service" else ()
    for index, (path, _) in enumerate(case["changes"]):
        if path == ["spec", "ports"]:
            return ("changes", index, 1)
    return ()


def _get(case: Case, path: Path) -> Any:
    target: Any = case
    for part in path:
        target = target[part]
    return target


def _put(case: Case, path: Path, amount: Any) -> Case:
    made = copy.deepcopy(case)
    _get(made, path[:-1])[path[-1]] = amount
    return made


def _targets(
    policies: list[dict[str, Any]], name: str, amount: int, decision: Decision
) -> Iterator[tuple[int, int]]:
    """The maximum (with 1) or minimum (with -1) of an amount under one policy alone."""
    grown = {(c.quota.name, n): q.nano for c in decision.charges for n, q in c.delta.items()}
    for policy in policies:
        if policy["kind"] == "ResourceQuota":
            quota = policy["metadata"]["name"]
            for each, left in left_of(policy).items():
                if bare(each) == name and (quota, each) in grown:
                    yield amount + left - grown[quota, each], 1
            continue
        for item in policy["spec"]["limits"]:
            beside = _beside(item["type"], name, amount, decision)
            for part, sign in (("min", -1), ("max", 1)):
                if name in item.get(part, {}):
                    yield value(item[part][name]) - beside, sign


def _beside(kind: str, name: str, amount: int, decision: Decision) -> int:
    """The amounts of a pod's other containers, for a range over the whole pod."""
    if kind != "Pod" or decision.object is None:
        return 0
    total = limit_range_totals(read_pod(decision.object)).limits.get(name)
    return total.nano - amount if total else 0
