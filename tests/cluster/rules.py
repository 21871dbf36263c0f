"""Random policies for the comparison with a live API server, drawn from a seed without requests.

A namespace's quotas bound a few themes each, so that most kinds of objects meet some but not all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tests.cluster.amounts import DEVICE, PAGES, Amounts, value

if TYPE_CHECKING:
    from random import Random

    from tests.cluster.amounts import Room

Policy = dict[str, Any]
PRIORITIES: Final = {"low": 10, "mid": 1000, "high": 100000, "cluster-services": 1000000}
"""Priority classes of the test cluster and their values."""
CLASSES: Final = ("gold", "expand")
"""Storage classes of the test cluster; claims of ``expand`` may grow."""
ATTRIBUTES: Final = ("silver", "bronze")
"""Volume attributes classes that claims use."""
_PER_CLASS: Final = tuple(
    f"{name}.storageclass.storage.k8s.io/{what}"
    for name in CLASSES
    for what in ("requests.storage", "persistentvolumeclaims")
)
_COMPUTE: Final = tuple(
    f"{side}{name}" for side in ("", "requests.", "limits.") for name in ("cpu", "memory")
)
_EPHEMERAL: Final = tuple(f"{side}ephemeral-storage" for side in ("", "requests.", "limits."))
_BALANCERS: Final = "services.loadbalancers"
_THEMES: Final = {
    "pods": ("pods", "count/pods"),
    "compute": _COMPUTE,
    "devices": (f"requests.{DEVICE}", PAGES, f"requests.{PAGES}", *_EPHEMERAL),
    "services": ("services", "count/services", *["services.nodeports"] * 3, _BALANCERS, _BALANCERS),
    "claims": ("persistentvolumeclaims", "requests.storage", "requests.storage", *_PER_CLASS),
    "counted": ("configmaps", "count/configmaps", "secrets", "count/deployments.apps"),
}
_SHARES: Final = {
    "pods": 0.2,
    "compute": 0.5,
    "devices": 0.3,
    "services": 0.85,
    "claims": 0.65,
    "counted": 0.75,
}
_ENDLESS: Final = 10**30
_SCOPED: Final = ("pods", *_COMPUTE)
_ATTRIBUTED: Final = ("persistentvolumeclaims", "requests.storage", *_PER_CLASS)
_SCOPES: Final = (
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "CrossNamespacePodAffinity",
)


def _draw_expression(random: Random, scope: str, values: tuple[str, ...]) -> dict[str, Any]:
    operator = random.choice(("In", "In", "NotIn", "Exists", "DoesNotExist"))
    found: dict[str, Any] = {"scopeName": scope, "operator": operator}
    if operator in {"In", "NotIn"}:
        found["values"] = random.sample(values, random.randint(1, 2))
    return found


def _by_priority(random: Random) -> dict[str, Any]:
    return _draw_expression(random, "PriorityClass", tuple(PRIORITIES))


def _by_attributes(random: Random) -> dict[str, Any]:
    return _draw_expression(random, "VolumeAttributesClass", ATTRIBUTES)


def draw_limited(random: Random) -> list[dict[str, Any]]:
    """The resources that need a covering quota on one API server."""
    by_priority = {"resource": "pods", "matchScopes": [_by_priority(random)]}
    other = {"scopeName": random.choice(_SCOPES), "operator": "Exists"}
    attributes = {"resource": "persistentvolumeclaims", "matchScopes": [_by_attributes(random)]}
    choices: tuple[list[dict[str, Any]], ...] = (
        [by_priority],
        [{"resource": "pods", "matchScopes": [other, _by_priority(random)]}, attributes],
        [{"resource": "pods", "matchContains": [random.choice(("pods", "cpu", "fpga"))]}],
        [
            {"resource": "persistentvolumeclaims", "matchContains": ["requests.storage"]},
            {"resource": "services", "matchContains": ["nodeports", "loadbalancers"]},
            by_priority,
        ],
    )
    return random.choice(choices)


def draw_policies(random: Random, limited: list[dict[str, Any]]) -> list[Policy]:
    """The policies of one namespace: up to three ranges and some quotas, mostly valid."""
    ranges = random.choice((0, 1, 1, 1, 2, 3))
    found = [draw_range(random, name) for name in sorted(random.sample("abcdef", ranges))]
    specs = [*_by_theme(random), *_by_scope(random)]
    if random.random() < 0.75:
        specs += [spec for entry in limited for spec in _covering(random, entry)]
    names = random.sample("abcdefghijkl", len(specs))
    return found + [
        _quota(random, f"q{name}", spec) for name, spec in zip(names, specs, strict=True)
    ]


def draw_range(random: Random, name: str) -> Policy:
    """A range of some types, mostly valid."""
    types = random.choice((["Container"], ["Container", "Pod"], ["Pod"], ["PersistentVolumeClaim"]))
    if random.random() < 0.25:
        types = ["Container", "Pod", "PersistentVolumeClaim"]
    items = [_item(random, kind) for kind in types]
    return {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": name},
        "spec": {"limits": items},
    }


def _item(random: Random, kind: str) -> dict[str, Any]:
    amounts, item = Amounts(random), {"type": kind}
    if kind == "PersistentVolumeClaim":
        low, *_, high = amounts.bounds("storage")
        both = {"min": {"storage": low}, "max": {"storage": high}}
        part = random.choice(("min", "max", ""))
        return {**item, **({part: both[part]} if part else both)}
    names = [*["cpu", "memory"] * 3, "ephemeral-storage", DEVICE, PAGES]
    for name in dict.fromkeys(random.choices(names, k=random.choice((1, 1, 2, 2, 3)))):
        for part, amount in _bounds(random, kind, name).items():
            item.setdefault(part, {})[name] = amount
    return item


def _bounds(random: Random, kind: str, name: str) -> dict[str, Any]:
    """Some of an item's maps for one resource, in an order that an API server accepts."""
    low, request, limit, high = sorted(Amounts(random).bounds(name), key=value)
    if name in {DEVICE, PAGES}:
        request = limit
    found = {"min": low, "defaultRequest": request, "default": limit, "max": high}
    if kind == "Pod":
        found = {"min": low, "max": high}
    kept = {part: amount for part, amount in found.items() if random.random() < 0.4}
    if name in {DEVICE, PAGES} and kept and kind == "Container" and random.random() < 0.9:
        # Pods may not have only a request of these, which a minimum would add.
        kept["default"] = limit
    if random.random() < 0.15:
        kept["maxLimitRequestRatio"] = random.choice(("1.5", "4", "10", "12500m", 40, "100"))
        # A ratio above max/min would be refused, without any effect on pods.
        kept.pop(random.choice(("min", "max")), None)
    return kept


def _by_theme(random: Random) -> list[Policy]:
    """Quotas without scopes: each of one or two themes."""
    themes = [theme for theme, share in _SHARES.items() if random.random() < share]
    random.shuffle(themes)
    found = []
    while themes:
        names: set[str] = set()
        for _ in range(min(random.choice((1, 2, 2)), len(themes))):
            pool = _THEMES[themes.pop()]
            names |= set(random.choices(pool, k=random.randint(1, 3)))
        found.append({"names": sorted(names)})
    return found


def _by_scope(random: Random) -> list[Policy]:
    """Quotas with scopes; updates of pods concern pods that become terminating."""
    found = []
    if random.random() < 0.8:
        shape: Policy = {"scopes": ["Terminating"]}
        if random.random() < 0.4:
            expression = {"scopeName": "Terminating", "operator": "Exists"}
            shape = {"scopeSelector": {"matchExpressions": [expression]}}
        found.append({"names": random.sample(_SCOPED, random.randint(1, 2)), **shape})
    if random.random() < 0.5:
        found.append(_scoped(random))
    if random.random() < 0.2:
        names = random.sample(_ATTRIBUTED, random.randint(1, 3))
        found.append({"names": names, **_selector(_by_attributes(random))})
    return found


def _selector(*expressions: dict[str, Any]) -> Policy:
    return {"scopeSelector": {"matchExpressions": list(expressions)}}


def _scoped(random: Random) -> Policy:
    """Scopes, a selector or both, and names that an API server accepts with them."""
    scopes = random.sample(_SCOPES, random.choice((0, 0, 1, 1, 2)))
    found: Policy = {"scopes": scopes} if scopes else {}
    if not scopes or random.random() < 0.3:
        expressions = [_by_priority(random)]
        if random.random() < 0.3:
            expressions.append({"scopeName": random.choice(_SCOPES), "operator": "Exists"})
        found |= _selector(*expressions)
        scopes = scopes + [each["scopeName"] for each in expressions]
    names = ["pods"] if "BestEffort" in scopes else random.sample(_SCOPED, random.randint(1, 4))
    return {"names": names, **found}


def _covering(random: Random, entry: dict[str, Any]) -> list[Policy]:
    """Quotas that cover the requirement of one entry of ``limitedResources``."""
    found: list[Policy] = []
    for scope in entry.get("matchScopes", ()):
        is_pods = scope["scopeName"] != "VolumeAttributesClass"
        found.append(
            {"names": ["pods" if is_pods else "persistentvolumeclaims"]} | _selector(scope)
        )
    for word in entry.get("matchContains", ()):
        names = {each for pool in _THEMES.values() for each in pool if word in each}
        of_pods = entry["resource"] == "pods"
        names = {each for each in names if not of_pods or "volume" not in each}
        found.append({"names": sorted(names), "is_roomy": random.random() < 0.8})
    return found


def _quota(random: Random, name: str, spec: Policy) -> Policy:
    amounts = Amounts(random)
    shape = {key: each for key, each in spec.items() if key not in {"names", "is_roomy"}}
    accounts = {each: amounts.account(each) for each in spec["names"]}
    if spec.get("is_roomy"):
        accounts = {each: (_much(each), "0") for each in accounts}
    hard = {each: account[0] for each, account in accounts.items()}
    used = {each: account[1] for each, account in accounts.items()}
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": name},
        "spec": {"hard": hard, **shape},
        "status": _status(random, hard, used),
    }


def _much(name: str) -> str:
    return "100Gi" if "memory" in name or "storage" in name.rpartition("/")[2] else "100"


def _status(random: Random, hard: dict[str, Any], used: dict[str, Any]) -> dict[str, Any]:
    """The status by the quota controller: mostly complete, sometimes missing or outdated."""
    chance = random.random()
    if chance < 0.03:
        return random.choice(({"hard": {}, "used": {}}, {"hard": hard, "used": {}}))
    if chance < 0.07:
        older = {name: Amounts(random).account(name)[0] for name in hard}
        return {"hard": older, "used": used}
    return {"hard": hard, "used": used}


def room_of(policies: list[Policy]) -> Room:
    """The amounts that few policies refuse: bounds by resource."""
    low: dict[str, int] = {}
    high: dict[str, int] = {}
    for policy in policies:
        if policy["kind"] == "ResourceQuota":
            for name, left in left_of(policy).items():
                if left > 0:
                    high[bare(name)] = min(left, high.get(bare(name), left))
            continue
        for item in policy["spec"]["limits"]:
            for name, amount in item.get("min", {}).items():
                low[name] = max(value(amount), low.get(name, 0))
            low = {**dict.fromkeys(item.get("maxLimitRequestRatio", ()), 1), **low}
            for name, amount in item.get("max", {}).items():
                high[name] = min(value(amount), high.get(name, value(amount)))
    return {name: (low.get(name, 0), high.get(name, _ENDLESS)) for name in {*low, *high}}


def left_of(quota: Policy) -> dict[str, int]:
    """The remaining amounts of a quota, by its own names, in billionths."""
    hard, used = (quota["status"].get(key) or {} for key in ("hard", "used"))
    return {name: value(most) - value(used.get(name, "0")) for name, most in hard.items()}


def bare(name: str) -> str:
    """The resource that a quota's name bounds: ``limits.cpu`` is about ``cpu``."""
    last = name.rpartition("/")[2] if ".storageclass." in name else name
    return last.removeprefix("requests.").removeprefix("limits.")
