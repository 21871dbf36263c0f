"""Laws of the plan: whatever the sides are, nobody's edit is lost, and passes come to rest."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.managed_fields import normal
from sync.reconcile import differences, judge, managers, resolve

pytestmark = pytest.mark.no_cover  # thousands of cases: tracing each line of them takes minutes
UNHURRIED = settings(deadline=None, max_examples=60)
Manifest = dict[str, Any]
AMOUNTS = st.sampled_from(
    ["0", "1", "1000m", ".5", "500m", "2", "1k", "1000", "1Gi", "1024Mi", "1073741824", "1u", "1e3"]
)
RESOURCES = st.sampled_from(["cpu", "memory", "pods", "requests.cpu", "example.com/gpu"])
LISTS = st.dictionaries(RESOURCES, AMOUNTS, max_size=3)
WORDS = st.sampled_from(["a", "b", "app.kubernetes.io/name", "x.y/z"])
TEXTS = st.dictionaries(WORDS, st.sampled_from(["", "1", "on"]), max_size=2)
FIELDS = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
ITEMS = st.fixed_dictionaries(
    {"type": st.sampled_from(["Container", "Pod"])}, optional=dict.fromkeys(FIELDS, LISTS)
)
SELECTORS = st.fixed_dictionaries({}, optional={"matchLabels": TEXTS})
RULES = st.fixed_dictionaries(
    {
        "policyPredicate": st.fixed_dictionaries(
            {}, optional={"labelSelector": SELECTORS, "annotationSelector": SELECTORS}
        ),
        "policyAction": st.fixed_dictionaries(
            {}, optional={"reject": st.booleans(), "updatedLabels": TEXTS}
        ),
    }
)
SCOPES = st.lists(st.sampled_from(["BestEffort", "Terminating"]), unique=True)
EXPRESSIONS = st.fixed_dictionaries(
    {"scopeName": st.just("PriorityClass"), "operator": st.sampled_from(["In", "Exists"])},
    optional={"values": st.lists(st.sampled_from(["high", "low"]), max_size=2)},
)
SELECTOR = st.fixed_dictionaries({"matchExpressions": st.lists(EXPRESSIONS, max_size=2)})
SPECS = {
    "LimitRange": st.fixed_dictionaries({"limits": st.lists(ITEMS, max_size=2)}),
    "ResourceQuota": st.fixed_dictionaries(
        {"hard": LISTS}, optional={"scopes": SCOPES, "scopeSelector": SELECTOR}
    ),
    "MetadataPolicy": st.fixed_dictionaries({"rules": st.lists(RULES, max_size=2)}),
}


def manifests(kind: str) -> st.SearchStrategy[Manifest]:
    metadata = st.fixed_dictionaries(
        {"name": st.just("n"), "namespace": st.just("ns")},
        optional={"labels": TEXTS, "annotations": TEXTS},
    )
    return st.fixed_dictionaries({"kind": st.just(kind), "metadata": metadata, "spec": SPECS[kind]})


ONE = st.sampled_from(sorted(SPECS)).flatmap(manifests)
PAIRS = st.sampled_from(sorted(SPECS)).flatmap(
    lambda kind: st.tuples(manifests(kind), manifests(kind))
)
# Two kinds of sides: of a few objects, so that two are often the same, or any.
SIDES = st.sampled_from(sorted(SPECS)).flatmap(
    lambda kind: st.lists(manifests(kind), min_size=2, max_size=3).flatmap(
        lambda few: st.tuples(*[st.none() | st.sampled_from(few)] * 3)
    )
)


@UNHURRIED
@given(ONE)
def test_a_normal_form_is_its_own_normal_form(manifest: Manifest) -> None:
    before = copy.deepcopy(manifest)
    assert normal(normal(manifest)) == normal(manifest)
    assert manifest == before


@UNHURRIED
@given(ONE, st.dictionaries(WORDS, WORDS), st.text(max_size=5))
def test_what_the_server_writes_is_never_a_difference(
    manifest: Manifest, status: Manifest, version: str
) -> None:
    live = copy.deepcopy(manifest) | {"status": status}
    live["metadata"] |= {"resourceVersion": version, "uid": "u", "managedFields": []}
    assert differences(normal(manifest), normal(live)) == ()


@UNHURRIED
@given(PAIRS)
def test_differences_are_none_exactly_if_normal_forms_are_equal(
    pair: tuple[Manifest, Manifest],
) -> None:
    one, other = map(normal, pair)
    assert (differences(one, other) == ()) is (one == other)


@UNHURRIED
@given(PAIRS)
def test_differences_are_the_same_from_both_sides(pair: tuple[Manifest, Manifest]) -> None:
    one, other = map(normal, pair)
    there = [(found.field, found.a, found.b) for found in differences(one, other)]
    back = [(found.field, found.b, found.a) for found in differences(other, one)]
    assert there == back


@UNHURRIED
@given(SIDES)
def test_an_owned_object_is_in_sync_exactly_if_both_sides_mean_the_same(sides: Any) -> None:
    base, ours, theirs = sides
    same = (ours and normal(ours)) == (theirs and normal(theirs))
    assert (judge(base, ours, theirs, owned=True).state == "in-sync") is same


@UNHURRIED
@given(SIDES)
def test_the_verdict_mirrors_when_the_sides_are_exchanged(sides: Any) -> None:
    base, ours, theirs = sides
    mirrored = {
        "none": {"none"},
        "conflict": {"conflict"},
        "import": {"create", "update"},
        "forget": {"delete"},
        "create": {"import"},
        "update": {"import"},
        "delete": {"forget"},
    }
    one = judge(base, ours, theirs, owned=True)
    other = judge(base, theirs, ours, owned=True)
    assert other.action in mirrored[one.action]


def carried_out(action: str, ours: Any, theirs: Any) -> tuple[Any, Any]:
    """Do what a verdict says."""
    if action in {"create", "update", "delete"}:
        return ours, ours
    return (theirs, theirs) if action in {"import", "forget"} else (ours, theirs)


@UNHURRIED
@given(SIDES)
def test_one_pass_converges_or_says_that_it_cannot(sides: Any) -> None:
    base, ours, theirs = sides
    verdict = judge(base, ours, theirs, owned=True)
    ours, theirs = carried_out(verdict.action, ours, theirs)
    base = theirs if verdict.action != "conflict" else base
    again = judge(base, ours, theirs, owned=True)
    assert again.state == ("conflict" if verdict.state == "conflict" else "in-sync")
    assert again.action in {"none", "conflict"}


@UNHURRIED
@given(SIDES, st.booleans())
def test_no_edit_is_overwritten(sides: Any, owned: bool) -> None:  # noqa: FBT001
    base, ours, theirs = (one and normal(one) for one in sides)
    action = judge(base, ours, theirs, owned=owned).action
    if action in {"create", "update", "delete"}:
        assert theirs == base
    if action in {"import", "forget"}:
        assert ours == base


@UNHURRIED
@given(SIDES)
def test_what_is_not_owned_is_never_written(sides: Any) -> None:
    assert judge(*sides, owned=False).action not in {"create", "update", "delete"}


@UNHURRIED
@given(PAIRS, st.sampled_from(["ours", "theirs"]))
def test_a_resolution_for_one_side_is_that_side(pair: tuple[Manifest, Manifest], side: Any) -> None:
    ours, theirs = pair
    fields = {found.field for found in differences(normal(ours), normal(theirs))}
    resolved = resolve(None, ours, theirs, dict.fromkeys(fields, side))
    assert resolved == normal(ours if side == "ours" or not fields else theirs)


@UNHURRIED
@given(PAIRS, st.randoms(use_true_random=False))
def test_a_mixed_resolution_has_each_field_from_the_side_that_was_chosen(
    pair: tuple[Manifest, Manifest], chance: Any
) -> None:
    ours, theirs = map(normal, pair)
    fields = {found.field for found in differences(ours, theirs)}
    choices = {field: chance.choice(["ours", "theirs"]) for field in sorted(fields)}
    resolved = resolve(None, ours, theirs, choices)
    to_ours = {found.field for found in differences(ours, resolved)}
    to_theirs = {found.field for found in differences(theirs, resolved)}
    # Defaults that follow from what was chosen are there, whoever was chosen for themselves.
    # Expressions are a set: one that was changed may have another place.
    moved = {found for found in to_ours | to_theirs if ".default" in found or "sions[" in found}
    assert to_ours - moved <= {field for field in fields if choices[field] == "theirs"}
    assert to_theirs - moved <= {field for field in fields if choices[field] == "ours"}


@UNHURRIED
@given(ONE, st.recursive(st.none() | st.text(max_size=2), lambda s: st.dictionaries(WORDS, s)))
def test_any_note_of_managers_can_be_read(manifest: Manifest, tree: Any) -> None:
    manifest["metadata"]["managedFields"] = [{"manager": "m", "fieldsV1": tree}, tree]
    assert all(field.startswith(".") for field in managers(manifest))


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["limits", "hard", "rules", "max", "cpu", "type"]), inner, max_size=3
        )
    ),
    max_leaves=6,
)


@UNHURRIED
@given(st.sampled_from(sorted(SPECS)), JUNK, JUNK, JUNK)
def test_junk_is_judged_like_everything_else(kind: str, base: Any, ours: Any, theirs: Any) -> None:
    sides = [{"kind": kind, "metadata": {"name": "n"}, "spec": one} for one in (base, ours, theirs)]
    verdict = judge(*sides, owned=True)
    # As JSON: to Python, False and 0 are the same.
    our, their = (json.dumps(normal(side), sort_keys=True) for side in sides[1:])
    assert (verdict.state == "in-sync") is (our == their)
