"""Manifests of every kind that has an editor, made at random: valid or not."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from engine.policy import ENFORCEMENT_ANNOTATION

NAMES = st.sampled_from(["cpu", "memory", "ephemeral-storage", "example.com/gpu", "hugepages-2Mi"])
AMOUNTS = st.one_of(
    st.integers(0, 10**6).map(str),
    st.sampled_from(["100m", "1Gi", "1.5", "1e3", "0", "64Mi", "2E", "0.5Ki", "12e-1"]),
)
KEYS = st.sampled_from(["team", "app.example.com/tier", "a", "owner.example.com/x-Y_z.1"])
VALUES = st.one_of(
    st.sampled_from(["", "a", "no", "y", "0o17", "1e3", "true", "a.b_c-d"]),
    st.from_regex(r"\A[A-Za-z0-9]([A-Za-z0-9._-]{0,20}[A-Za-z0-9])?\Z"),
)
TEXTS = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=30)
LABELS = st.dictionaries(KEYS, VALUES, max_size=3)
ANNOTATIONS = st.dictionaries(KEYS, TEXTS, max_size=3)


@st.composite
def _metadata(draw: st.DrawFn, *, is_namespaced: bool = True) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": draw(st.sampled_from(["one", "b.c-d", "x1"]))}
    if is_namespaced:
        metadata["namespace"] = "team"
    if labels := draw(LABELS):
        metadata["labels"] = labels
    annotations = draw(ANNOTATIONS)
    if is_namespaced and draw(st.booleans()):
        annotations[ENFORCEMENT_ANNOTATION] = draw(st.sampled_from(["warn", "audit"]))
    return {**metadata, **({"annotations": annotations} if annotations else {})}


def _object(kind: str, spec: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    version = "policy.gatehouse.dev/v1alpha1" if kind == "MetadataPolicy" else "v1"
    head = {"apiVersion": st.just(version), "kind": st.just(kind)}
    return st.fixed_dictionaries({**head, "metadata": _metadata(), "spec": spec})


@st.composite
def _item(draw: st.DrawFn, kind: str) -> dict[str, Any]:
    item: dict[str, Any] = {"type": kind}
    for name in ("min", "max", "default", "defaultRequest", "maxLimitRequestRatio"):
        if amounts := draw(st.dictionaries(NAMES, st.one_of(AMOUNTS, st.none()), max_size=3)):
            item[name] = amounts
    return item


@st.composite
def _limits(draw: st.DrawFn) -> dict[str, Any]:
    types = draw(
        st.lists(
            st.sampled_from(["Container", "Pod", "PersistentVolumeClaim", "x.y/z"]), max_size=4
        )
    )
    return {"limits": [draw(_item(kind)) for kind in types]}


def _selector() -> st.SearchStrategy[dict[str, Any]]:
    values = st.lists(st.one_of(VALUES, TEXTS), min_size=1, max_size=3)
    expression = st.one_of(
        st.fixed_dictionaries(
            {"key": KEYS, "operator": st.sampled_from(["In", "NotIn"]), "values": values}
        ),
        st.fixed_dictionaries(
            {"key": KEYS, "operator": st.sampled_from(["Exists", "DoesNotExist"])},
            optional={"values": st.just([])},
        ),
    )
    return st.fixed_dictionaries(
        {}, optional={"matchLabels": LABELS, "matchExpressions": st.lists(expression, max_size=3)}
    )


def _rules() -> st.SearchStrategy[dict[str, Any]]:
    predicate = st.fixed_dictionaries(
        {}, optional={"labelSelector": _selector(), "annotationSelector": _selector()}
    )
    updates = {
        "updatedLabels": LABELS.filter(bool),
        "updatedAnnotations": ANNOTATIONS.filter(bool),
    }
    action = st.fixed_dictionaries({"reject": st.booleans()}, optional=updates)
    rule = st.fixed_dictionaries({"policyPredicate": predicate, "policyAction": action})
    return st.fixed_dictionaries(
        {"rules": st.lists(rule, max_size=4)},
        optional={"ratchet": st.sampled_from([True]), "strict": st.sampled_from([True])},
    )


_CLASSES = st.lists(
    st.sampled_from(["high", "low", "system-node-critical"]), min_size=1, max_size=2
)
_EXPRESSION = st.one_of(
    st.fixed_dictionaries(
        {
            "scopeName": st.just("PriorityClass"),
            "operator": st.sampled_from(["In", "NotIn"]),
            "values": _CLASSES,
        }
    ),
    st.fixed_dictionaries(
        {
            "scopeName": st.sampled_from(["Terminating", "BestEffort"]),
            "operator": st.just("Exists"),
        },
        optional={"values": st.just([])},
    ),
)


def _quota() -> st.SearchStrategy[dict[str, Any]]:
    names = st.sampled_from(["pods", "requests.cpu", "limits.memory", "count/jobs.batch"])
    selector = st.one_of(
        st.just({}),
        st.fixed_dictionaries({"matchExpressions": st.lists(_EXPRESSION, min_size=1, max_size=3)}),
    )
    return st.fixed_dictionaries(
        {},
        optional={
            "hard": st.dictionaries(names, st.one_of(AMOUNTS, st.none()), min_size=1, max_size=4),
            "scopes": st.lists(
                st.sampled_from(["Terminating", "BestEffort"]), min_size=1, max_size=2, unique=True
            ),
            "scopeSelector": selector,
        },
    )


def _priority_class() -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {
            "apiVersion": st.just("scheduling.k8s.io/v1"),
            "kind": st.just("PriorityClass"),
            "metadata": _metadata(is_namespaced=False),
            "value": st.integers(-(2**31), 10**9),
        },
        optional={
            "globalDefault": st.sampled_from([True]),
            "preemptionPolicy": st.sampled_from(["Never", "PreemptLowerPriority"]),
            "description": TEXTS.filter(bool),
        },
    )


def _configuration() -> st.SearchStrategy[dict[str, Any]]:
    entry = st.fixed_dictionaries(
        {"resource": st.sampled_from(["pods", "persistentvolumeclaims"])},
        optional={
            "apiGroup": st.just("apps"),
            "matchContains": st.lists(st.sampled_from(["cpu", "a, b"]), min_size=1, max_size=2),
            "matchScopes": st.lists(_EXPRESSION, min_size=1, max_size=2),
        },
    )
    return st.fixed_dictionaries(
        {
            "apiVersion": st.just("apiserver.config.k8s.io/v1"),
            "kind": st.just("ResourceQuotaConfiguration"),
            "limitedResources": st.lists(entry, max_size=3),
        }
    )


def _namespace_class() -> st.SearchStrategy[dict[str, Any]]:
    patterns = st.lists(st.sampled_from(["team-*", "shop", "*", "a, b", ""]), max_size=3)
    selector = st.builds(
        lambda labels, names: {**labels, **({} if names is None else {"names": names})},
        _selector(),
        st.none() | patterns,
    )
    parameter = st.fixed_dictionaries(
        {"name": st.sampled_from(["cpu", "max-memory", ""])},
        optional={
            "type": st.sampled_from(["string", "quantity", "number"]),
            "default": st.one_of(AMOUNTS, TEXTS, st.integers(0, 99)),
            "description": TEXTS,
        },
    )
    policy = st.one_of(
        _object("LimitRange", _limits()), _object("MetadataPolicy", _rules()), st.just({})
    )
    spec = st.fixed_dictionaries(
        {},
        optional={
            "description": TEXTS,
            "clusters": patterns,
            "selector": st.none() | selector,
            "parameters": st.none() | st.lists(st.none() | parameter, max_size=3),
            "policies": st.none() | st.lists(policy, max_size=3),
            "onLeave": st.sampled_from(["keep", "remove"]),
        },
    )
    return st.fixed_dictionaries(
        {
            "apiVersion": st.just("policy.gatehouse.dev/v1alpha1"),
            "kind": st.just("NamespaceClass"),
            "metadata": st.fixed_dictionaries({"name": st.sampled_from(["one", "x1", ""])}),
            "spec": spec,
        }
    )


OF_KIND: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "LimitRange": _object("LimitRange", _limits()),
    "ResourceQuota": _object("ResourceQuota", _quota()),
    "MetadataPolicy": _object("MetadataPolicy", _rules()),
    "PriorityClass": _priority_class(),
    "ResourceQuotaConfiguration": _configuration(),
    "NamespaceClass": _namespace_class(),
}
