"""Form to YAML to form: nothing is lost, whatever a manifest says and a browser does to texts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from policies.drafts.draft import render
from policies.drafts.forms import limit_range, metadata_rules, quota
from policies.drafts.forms.namespace_class import settled
from policies.drafts.forms.sheets import Sheet, read_sheet, renumbered, with_line, without_line
from policies.drafts.kinds import BY_NAME, KINDS, NAMESPACE_CLASS
from policies.manifests.sources import parse_documents
from tests.policies.drafts.random_manifests import OF_KIND

if TYPE_CHECKING:
    from collections.abc import Mapping

    from policies.drafts.kinds import EditableKind

QUICK = settings(max_examples=40, suppress_health_check=list(HealthCheck))
WHOLE = settings(max_examples=1000, suppress_health_check=list(HealthCheck))
every_kind = pytest.mark.parametrize("kind", [*KINDS, NAMESPACE_CLASS], ids=lambda kind: kind.name)


def posted(sheet: Sheet) -> dict[str, str]:
    """What a browser sends of a form: names with their numbers, line breaks as it writes them."""
    cells = {
        f"{group}-{number}-{column}": cell
        for group, lines in sheet.lines.items()
        for number, line in enumerate(lines)
        for column, cell in line.items()
    }
    found = {**sheet.fields, **cells}
    return {name: re.sub("\r\n|\r|\n", "\r\n", cell) for name, cell in found.items()}


def sent(kind: EditableKind, sheet: Sheet) -> Sheet:
    return read_sheet(posted(sheet), fields=kind.fields, groups=kind.groups)


def parsed(text: str) -> Any:
    [document] = parse_documents(text, "test")
    return document.value


def check_lossless(kind: EditableKind, manifest: Mapping[str, Any]) -> None:
    """Show it, send it as it is, write it, read it, and show it again."""
    base = parsed(render(manifest))
    sheet = kind.show(base)
    built = kind.build(sent(kind, sheet), base)
    assert built.manifest == base
    assert built.problems == [] or kind.name == "LimitRange"
    again = parsed(render(built.manifest))
    assert again == base
    assert kind.show(again) == sheet


@every_kind
@given(data=st.data())
@QUICK
def test_form_loses_nothing(kind: EditableKind, data: st.DataObject) -> None:
    check_lossless(kind, data.draw(OF_KIND[kind.name]))


@pytest.mark.long
@every_kind
@given(data=st.data())
@WHOLE
def test_form_loses_nothing_of_a_thousand(kind: EditableKind, data: st.DataObject) -> None:
    check_lossless(kind, data.draw(OF_KIND[kind.name]))


@pytest.mark.parametrize(
    "kind",
    [kind for kind in (*KINDS, NAMESPACE_CLASS) if kind.groups],
    ids=lambda kind: kind.name,
)
@given(data=st.data())
@QUICK
def test_what_a_form_keeps_outlives_a_line_before_it(
    kind: EditableKind, data: st.DataObject
) -> None:
    base = parsed(render(data.draw(OF_KIND[kind.name])))
    sheet = kind.show(base)
    lines = [(group, at) for group in kind.groups for at in range(len(sheet.of(group)))]
    assume(lines)
    dropped = without_line(sheet, *data.draw(st.sampled_from(lines)))
    built = kind.build(dropped, base)
    is_class = kind is NAMESPACE_CLASS
    next_sheet = settled(dropped, base) if is_class else renumbered(dropped, built)
    assert kind.build(next_sheet, built.manifest).manifest == built.manifest


def test_new_line_joins_the_item_of_its_type() -> None:
    rows = [
        {"item": "0", "type": "Container", "resource": "cpu", "max": "2"},
        {"type": "Container", "resource": "memory", "max": "1Gi"},
        {"type": "Pod", "resource": "cpu", "max": "8"},
        {"type": "Container"},
    ]
    built = limit_range.build(Sheet({}, {"row": rows}), {})
    maxima = [(item["type"], item["max"]) for item in built.manifest["spec"]["limits"]]
    assert maxima == [("Container", {"cpu": "2", "memory": "1Gi"}), ("Pod", {"cpu": "8"})]
    assert built.cell_of("spec.limits[0].max[memory]") == "row-1-max"


def test_second_line_of_one_resource_is_told_at_its_cell() -> None:
    row = {"type": "Pod", "resource": "cpu", "max": "1"}
    built = limit_range.build(Sheet({}, {"row": [row, row]}), {})
    assert [cell for cell, _ in built.problems] == ["row-1-resource"]


def test_derived_amounts_are_those_of_the_engine() -> None:
    rows = [
        {"type": "Container", "resource": "cpu", "max": "2", "min": "100m"},
        {"type": "Container", "resource": "memory", "min": "64Mi", "max": "nonsense"},
        {"type": "Pod", "resource": "cpu", "max": "2"},
    ]
    assert limit_range.derived(Sheet({}, {"row": rows})) == {
        "row-0-default": "2",
        "row-0-defaultRequest": "2",
        "row-1-defaultRequest": "64Mi",
    }


def test_only_legal_pairs_of_scope_and_resource_are_offered() -> None:
    best_effort = Sheet(
        {}, {"hard": [], "scope": [{"scopeName": "BestEffort", "operator": "plain"}]}
    )
    offered = quota.offered_resources(best_effort)
    assert "pods" in offered
    assert "cpu" not in offered
    services = Sheet({}, {"hard": [{"resource": "services", "amount": "1"}], "scope": []})
    assert quota.offered_scopes(services) == []
    assert "NotBestEffort" not in quota.offered_scopes(best_effort)


def test_limit_without_amount_is_no_limit_of_zero() -> None:
    built = quota.build(Sheet({}, {"hard": [{"resource": "pods", "amount": ""}]}), {})
    assert built.manifest["spec"] == {}
    assert [cell for cell, _ in built.problems] == ["hard-0-amount"]


@pytest.mark.parametrize("name", metadata_rules.READY)
def test_ready_made_rule_can_be_filled_in(name: str) -> None:
    sheet = metadata_rules.with_ready(Sheet(), name)
    for line in sheet.of("if") + sheet.of("then"):
        line.setdefault("key", "team")
    built = metadata_rules.build(sheet, BY_NAME["MetadataPolicy"].blank("team"))
    [rule] = built.manifest["spec"]["rules"]
    action = rule["policyAction"]
    assert (
        action["reject"] or action["updatedLabels" if name == "default" else "updatedAnnotations"]
    )


def test_rule_takes_its_own_lines_with_it() -> None:
    begun = metadata_rules.with_ready(Sheet(), "require")
    begun.of("if")[0]["key"] = "team"
    sheet = metadata_rules.with_ready(begun, "default")
    left = without_line(sheet, "rule", 0)
    assert [line["rule"] for line in left.of("if") + left.of("then")] == ["0", "0"]
    assert len(with_line(left, "if", {"rule": "0"}).of("if")) == 2


def test_lines_keep_their_parents_when_numbers_have_gaps() -> None:
    data = {"rule-4-does": "refuse", "rule-9-does": "set", "then-7-rule": "9", "then-7-key": "k"}
    sheet = read_sheet(data, fields=(), groups=("rule", "then"))
    assert sheet.of("then") == [{"rule": "1", "key": "k"}]
