"""Journeys of the editor: create each kind by form and by YAML, edit, compare, restore, import."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import pytest
from playwright.sync_api import expect

from tests.browser.cluster_side import review_pod
from tests.browser.hands import HANDS, Clicks
from tests.browser.visitor import PHONE, WIDE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Browser

    from tests.browser.demo_portal import Portal
    from tests.browser.hands import Hand
    from tests.browser.visitor import Visitor

pytestmark = pytest.mark.ui
CLUSTER = "/clusters/demo"
PLACE = f"{CLUSTER}/namespaces/payments"
RULE = """\
  rules:
  - policyPredicate:
      labelSelector:
        matchExpressions:
        - {key: tier, operator: DoesNotExist}
    policyAction: {reject: true}
"""
SPECS = {
    "limitranges": ("v1", "LimitRange", "  limits:\n  - {type: Container, max: {cpu: '2'}}\n"),
    "resourcequotas": ("v1", "ResourceQuota", "  hard: {pods: '90'}\n"),
    "metadatapolicies": ("policy.gatehouse.dev/v1alpha1", "MetadataPolicy", RULE),
}
FIELDS = {
    "limitranges": {"row-0-resource": "cpu", "row-0-max": "2"},
    "resourcequotas": {"hard-0-resource": "pods", "hard-0-amount": "90"},
    "metadatapolicies": {"if-0-key": "tier"},
}
EDITED = {"limitranges": "row-0-max", "resourcequotas": "hard-0-amount"}


CLEAR = """
from policies import services
from policies.models import LimitRange, MetadataPolicy, ResourceQuota
for kind in (LimitRange, MetadataPolicy, ResourceQuota):
    for policy in kind.objects.filter(name__startswith="ui-"):
        services.delete_policy(policy=policy, user="tests", reason="the journeys are over")
"""


@pytest.fixture(scope="module", autouse=True)
def left_as_found(portal: Portal) -> Iterator[None]:
    """Policies of these journeys must not judge pods of other journeys."""
    yield
    portal.manage("shell", "-c", CLEAR)


@pytest.fixture
def only_demo(portal: Portal) -> None:
    """Without the policies of other journeys, which would refuse the same pods."""
    portal.manage("shell", "-c", CLEAR)


def manifest(plural: str, name: str) -> str:
    version, kind, spec = SPECS[plural]
    metadata = f"metadata: {{name: {name}, namespace: payments}}"
    return f"apiVersion: {version}\nkind: {kind}\n{metadata}\nspec:\n{spec}"


def save(visitor: Visitor, hand: Hand, reason: str) -> None:
    """Open the dialog and save with a reason; the page of the stored policy follows.

    If saving would refuse running pods, enter the requested name of the namespace.
    """
    page = visitor.page
    page.wait_for_timeout(800)  # the typed text has been validated
    hand.press(visitor.main("button", "Save"))
    dialog = page.locator("#save-dialog[open]")
    dialog.wait_for()
    hand.fill(dialog.locator("#reason"), reason)
    if (confirm := dialog.locator("#confirm")).count():
        hand.fill(confirm, "payments")
    with page.expect_navigation():
        hand.press(dialog.get_by_role("button", name="Save", exact=True))
    assert page.get_by_role("alert").count() == 0
    visitor.check()


def show(visitor: Visitor, hand: Hand, tab: str) -> None:
    """Open a tab beside the form."""
    tabs = visitor.page.get_by_role("navigation", name="Views of the policy")
    hand.press(tabs.get_by_role("link", name=tab))


def named(hand: Hand, *words: str) -> str:
    return "-".join(("ui", type(hand).__name__.lower(), *words))


@pytest.mark.parametrize("plural", SPECS)
def test_kind_is_made_by_form(visit: Callable[[str], Visitor], hand: Hand, plural: str) -> None:
    visitor, name = visit("editor"), named(hand, "form")
    begun = "?ready=require" if plural == "metadatapolicies" else ""
    page = visitor.go(f"{PLACE}/{plural}/new{begun}")
    hand.fill(page.get_by_label("Name", exact=True), name)
    for field, text in FIELDS[plural].items():
        part = page.locator(f'[name="{field}"]')
        part.wait_for()
        hand.fill(part, text)
    save(visitor, hand, "made by form")
    assert page.url.endswith(f"{PLACE}/{plural}/{name}/")
    assert page.get_by_role("heading", level=1).inner_text() == name


def test_validation_does_not_press_the_focused_button(
    visit: Callable[[str], Visitor],
) -> None:
    visitor = visit("editor")
    page = visitor.go(f"{PLACE}/resourcequotas/new")
    page.locator('[name="hard-0-amount"]').wait_for()
    with page.expect_request(lambda request: request.method == "POST") as posted:
        page.get_by_label("Name", exact=True).fill("ui-looked-at")
        page.get_by_role("button", name="Limit pods").focus()
    sent = parse_qs(posted.value.post_data or "")
    assert sent["name"] == ["ui-looked-at"]
    assert "do" not in sent


def test_an_error_is_shown_beside_its_amount_until_it_is_corrected(
    visit: Callable[[str], Visitor], hand: Hand
) -> None:
    page = visit("editor").go(f"{PLACE}/resourcequotas/new")
    hand.fill(page.get_by_label("Name", exact=True), named(hand, "wrong"))
    amount = page.locator('[name="hard-0-amount"]')
    amount.wait_for()
    hand.fill(page.locator('[name="hard-0-resource"]'), "pods")
    hand.fill(amount, "ten")
    error = page.locator("#hard-0-amount-wrong")
    # The validation may run before the amount is typed: then it reports a missing amount.
    error.filter(has_text='Invalid value: "ten"').wait_for()
    assert amount.get_attribute("aria-describedby") == "hard-0-amount-wrong"
    hand.fill(amount, "10")
    error.wait_for(state="detached")
    assert amount.get_attribute("aria-invalid") is None


@pytest.mark.parametrize("plural", SPECS)
def test_kind_is_made_by_yaml(visit: Callable[[str], Visitor], hand: Hand, plural: str) -> None:
    visitor, name = visit("editor"), named(hand, "yaml")
    page = visitor.go(f"{PLACE}/{plural}/new")
    hand.fill(page.locator(".cm-content"), manifest(plural, name))
    save(visitor, hand, "made by YAML")
    assert page.url.endswith(f"{PLACE}/{plural}/{name}/")


@pytest.mark.parametrize("plural", SPECS)
def test_kind_is_imported(visit: Callable[[str], Visitor], hand: Hand, plural: str) -> None:
    visitor, name = visit("editor"), named(hand, "import")
    page = visitor.go(f"{CLUSTER}/import/")
    text = page.locator(".cm-content:visible, #yaml:visible").first
    hand.fill(text, manifest(plural, name))
    hand.press(visitor.main("button", "Preview the changes"))
    page.get_by_role("heading", name="Changes on save").wait_for()
    assert page.get_by_role("row", name=name).get_by_text("created", exact=True).is_visible()
    hand.fill(page.locator("#reason"), "moved in")
    with page.expect_navigation():
        hand.press(visitor.main("button", "Save all 1"))
    visitor.go(f"{PLACE}/{plural}/{name}/")


@pytest.mark.parametrize("plural", EDITED)
def test_edit_is_compared_and_restored(
    visit: Callable[[str], Visitor], hand: Hand, plural: str
) -> None:
    visitor, name = visit("editor"), named(hand, "edit")
    page = visitor.go(f"{PLACE}/{plural}/new")
    hand.fill(page.locator(".cm-content"), manifest(plural, name))
    save(visitor, hand, "first")
    first = page.locator(f'[name="{EDITED[plural]}"]').input_value()
    hand.fill(page.locator(f'[name="{EDITED[plural]}"]'), "3")
    show(visitor, hand, "Diff")
    page.get_by_role("list", name="Changes in words").get_by_role("listitem").first.wait_for()
    save(visitor, hand, "second")
    show(visitor, hand, "History")
    hand.press(visitor.main("link", "All revisions, to compare"))
    hand.press(page.get_by_role("main").get_by_role("button", name="Compare selected"))
    page.get_by_role("heading", name="Version 1 and version 2").wait_for()
    hand.press(page.get_by_role("main").get_by_role("link", name="1", exact=True))
    hand.fill(page.locator("#reason"), "as before")
    with page.expect_navigation():
        hand.press(visitor.main("button", "Restore version 1"))
    visitor.go(f"{PLACE}/{plural}/{name}/")
    assert page.locator(f'[name="{EDITED[plural]}"]').input_value() == first


@pytest.mark.parametrize(
    ("name", "status", "sent"), [("viewer", 200, 403), ("other", 404, 404), ("approver", 404, 404)]
)
def test_policy_is_edited_by_permitted_users(
    visit: Callable[[str], Visitor], name: str, status: int, sent: int
) -> None:
    visitor, path = visit(name), f"{PLACE}/limitranges/limits/"
    visitor.go(path, status=status)
    assert visitor.page.get_by_role("button", name="Save", exact=True).count() == 0
    text = manifest("limitranges", "limits")
    assert visitor.post(path, do="save", yaml=text, reason="x", seen="1") == sent
    assert visitor.post(f"{PLACE}/limitranges/new", do="save", yaml=text, reason="x") == sent
    assert visitor.post(f"{CLUSTER}/import/", do="save", text=text, reason="x") in {403, 404, 422}


@pytest.mark.parametrize("name", ["editor", "admin"])
def test_editing_is_offered_to_permitted_users(visit: Callable[[str], Visitor], name: str) -> None:
    visitor = visit(name)
    visitor.go(f"{PLACE}/limitranges/limits/")
    assert visitor.page.get_by_role("button", name="Save", exact=True).count() == 1


@pytest.mark.usefixtures("only_demo")
def test_pods_that_could_not_restart_are_listed_and_a_value_that_passes_is_used(
    visit: Callable[[str], Visitor], hand: Hand
) -> None:
    visitor = visit("editor")
    page = visitor.go(f"{PLACE}/limitranges/limits/")
    hand.fill(page.locator('[name="row-0-max"]'), "1")
    page.wait_for_timeout(800)
    show(visitor, hand, "Impact")
    owners = page.get_by_role("group", name="Pods that would be refused")
    owners.locator("summary").first.wait_for()
    hand.press(page.get_by_role("button", name="Use 1500m"))
    page.locator('[name="row-0-max"][value="1500m"]').wait_for()
    page.get_by_text("would be admitted").wait_for()
    visitor.check()


def test_one_limit_range_is_made_for_three_namespaces_in_eight_clicks(
    visit: Callable[[str], Visitor], hand: Hand
) -> None:
    visitor, clicks = visit("admin"), Clicks(hand)
    name = f"ui-three-{type(hand).__name__.lower()}"
    page = visitor.go(f"{PLACE}/limitranges/new")
    clicks.number = 2  # New policy, and the answer to its questions
    for field, text in {"name": name, "row-0-resource": "memory", "row-0-max": "90Gi"}.items():
        clicks.fill(page.locator(f'#editor [name="{field}"]'), text)
    clicks.fill(page.locator("#place"), "web, reports")
    page.keyboard.press("Enter")
    page.get_by_role("list", name="Other namespaces").get_by_role("listitem").nth(1).wait_for()
    clicks.press(visitor.main("button", "Save"))
    page.locator("#save-dialog[open] #reason").wait_for()
    page.keyboard.insert_text("one rule for three")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    assert clicks.number <= 8
    for namespace in ("payments", "web", "reports"):
        visitor.go(f"{CLUSTER}/namespaces/{namespace}/limitranges/{name}/")


@pytest.mark.usefixtures("only_demo")
def test_label_is_forbidden_in_audit_and_enforced_in_eight_clicks(
    visit: Callable[[str], Visitor], world: dict[str, Any], hand: Hand
) -> None:
    visitor, clicks = visit("editor"), Clicks(hand)
    name = type(hand).__name__.lower()
    page = visitor.go(f"{PLACE}/metadatapolicies/new")
    clicks.number = 2  # New policy, and the answer to its questions
    page.keyboard.insert_text(f"ui-forbids-{name}")  # the name has the focus
    clicks.press(page.get_by_role("button", name="Forbid a label"))
    page.locator('[name="if-0-is"]').locator("option[value=Exists][selected]").wait_for(
        state="attached"
    )
    clicks.fill(page.locator('[name="if-0-key"]'), f"legacy-{name}")
    clicks.tick(page.locator("#enforcement").get_by_label("audit"))
    clicks.press(visitor.main("button", "Save"))
    page.locator("#save-dialog[open] #reason").wait_for()
    page.keyboard.insert_text("look first")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    page.get_by_role("heading", name="Nothing would have been denied").wait_for()
    labels = {"team": "payments", f"legacy-{name}": "yes"}
    for number in (1, 2):
        pod = f"ui-{name}-{number}"
        review_pod(visitor, world, name=pod, namespace="payments", labels=labels)
    page.reload()
    page.get_by_role("heading", name="2 requests would have been denied").wait_for()
    clicks.press(visitor.main("button", "Promote to enforce"))
    page.locator("#save-dialog[open] #reason").wait_for()
    page.keyboard.insert_text("nobody uses it")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    assert page.locator("#enforcement").get_by_label("enforce").is_checked()
    assert clicks.number <= 8
    visitor.check()


def test_audit_of_the_demo_shows_what_it_found(visit: Callable[[str], Visitor]) -> None:
    visitor = visit("admin")
    page = visitor.go("/")
    needs = page.locator("section:has(> #needs)")
    expect(needs).to_contain_text("cost-center runs in audit")
    item = needs.locator("li", has_text="cost-center runs in audit")
    if not item.is_visible():
        # More urgent lines, of what other journeys did, stand before it.
        needs.locator(".more-needs > summary").click()
    item.get_by_role("link", name="Promote to enforce…").click()
    title = page.get_by_role("heading", name="requests would have been denied").inner_text()
    assert int(title.split()[0]) > 100
    page.get_by_role("link", name="Open them").click()
    page.wait_for_url(lambda url: "verdict=would-deny" in url)
    page.locator(".log [data-open]").first.wait_for()


def test_save_is_in_sight_and_each_pane_scrolls_by_itself(visit: Callable[[str], Visitor]) -> None:
    visitor = visit("editor")
    page = visitor.go(f"{PLACE}/limitranges/limits/")
    assert page.evaluate("document.documentElement.scrollHeight") <= WIDE["height"]
    visitor.look(theme="light", size=PHONE)
    box = visitor.main("button", "Save").bounding_box()
    assert box is not None
    assert box["y"] + box["height"] <= PHONE["height"]


GRID = """() => {
  const ink = document.createElement("canvas").getContext("2d");
  const cut = (field) => {
    const style = getComputedStyle(field);
    ink.font = style.font;
    const arrow = field.matches("select") ? 20 : 0;
    const padding = parseFloat(style.paddingLeft) + parseFloat(style.paddingRight);
    const room = field.clientWidth - padding - arrow;
    const text = field.matches("select") ? "PersistentVolumeClaim" : field.value;
    return ink.measureText(text).width > room;
  };
  const row = document.querySelector(".limit-lines tbody tr");
  const fields = [...row.querySelectorAll("td[data-label] :is(input:not([type=hidden]), select)")];
  const heads = [...document.querySelectorAll(".limit-lines thead th")];
  const isGrid = getComputedStyle(row).display === "table-row";
  const left = (part) => part.getBoundingClientRect().left;
  const isBeside = (field, at) => isGrid && Math.abs(left(field) - left(heads[at])) > 1;
  const isCut = (head, at) => isGrid && at < fields.length && head.scrollWidth > head.clientWidth;
  return {
    cut: fields.filter(cut).map((field) => field.name),
    beside: fields.filter(isBeside).map((field) => field.name),
    headsCut: heads.filter(isCut).length,
  };
}"""


@pytest.mark.parametrize("width", [1440, 1101, 1000, 390])
def test_grid_of_limits_shows_types_whole_below_their_headers(
    visit: Callable[[str], Visitor], width: int
) -> None:
    visitor = visit("editor")
    visitor.look(theme="light", size={"width": width, "height": 900})
    page = visitor.go(f"{PLACE}/limitranges/limits/")
    assert page.evaluate(GRID) == {"cut": [], "beside": [], "headsCut": 0}
    assert visitor.overflow() == ""


def test_condition_without_values_has_no_field_for_them(visit: Callable[[str], Visitor]) -> None:
    page = visit("editor").go(f"{PLACE}/metadatapolicies/ownership/")
    values = page.locator('[name="if-0-values"]')
    assert values.is_hidden()
    page.locator('[name="if-0-is"]').select_option("In")
    assert values.is_visible()


@pytest.mark.usefixtures("only_demo")
def test_recent_object_and_example_are_tried(
    visit: Callable[[str], Visitor], hand: Hand, axe: Path
) -> None:
    visitor = visit("editor")
    page = visitor.go(f"{PLACE}/limitranges/limits/")
    show(visitor, hand, "Test")
    hand.press(page.get_by_role("button", name="Above the maximum"))
    trial = page.locator("#trial")
    trial.get_by_text("maximum cpu usage per Container is 2").first.wait_for()
    assert "example" in page.locator("#pod").input_value()
    with page.expect_response(lambda answer: answer.request.method == "POST"):
        hand.press(page.get_by_role("button", name="Try it"))
    expect(page.locator("#pod")).not_to_have_value(re.compile("name: example"))
    assert trial.get_by_role("heading", name="With this draft").is_visible()
    assert visitor.hindrances(axe) == []
    visitor.check()


def test_differences_stand_side_by_side_where_they_fit(
    visit: Callable[[str], Visitor], hand: Hand
) -> None:
    visitor = visit("editor")
    page = visitor.go(f"{PLACE}/limitranges/limits/")
    show(visitor, hand, "Diff")
    hand.fill(page.locator('[name="row-0-max"]'), "3")
    split = page.get_by_role("table", name="Differences side by side")
    page.get_by_role("table", name="Differences line by line").wait_for()
    assert split.count() == 0
    hand.press(page.get_by_role("button", name="Split"))
    split.wait_for()
    hand.fill(page.locator('[name="row-0-max"]'), "4")
    page.locator('.diff-split mark:text-is("\\"4\\"")').wait_for()
    assert page.get_by_role("button", name="Split").get_attribute("aria-pressed") == "true"
    visitor.look(theme="light", size=PHONE)
    show(visitor, hand, "Diff")
    assert split.count() == 0


def test_policy_is_edited_without_scripts(
    browser: Browser, portal: Portal, states: dict[str, Any]
) -> None:
    context = browser.new_context(
        base_url=portal.address, storage_state=states["editor"], java_script_enabled=False
    )
    page = context.new_page()
    page.goto(f"{PLACE}/limitranges/new")
    page.get_by_label("Name", exact=True).fill("ui-without-scripts")
    page.locator('[name="row-0-resource"]').fill("cpu")
    page.locator('[name="row-0-max"]').fill("90")
    page.locator("#reason").fill("no scripts here")
    page.get_by_role("button", name="Save", exact=True).first.click()
    assert page.url.endswith("/limitranges/ui-without-scripts/")
    context.close()


def test_ctrl_s_opens_the_dialog_and_enter_saves(visit: Callable[[str], Visitor]) -> None:
    visitor = visit("editor")
    page = visitor.go(f"{PLACE}/resourcequotas/new")
    page.get_by_label("Name", exact=True).fill("ui-by-enter")
    page.locator('[name="hard-0-resource"]').fill("pods")
    page.locator('[name="hard-0-amount"]').fill("900")
    page.keyboard.press("Control+s")
    page.locator("#save-dialog[open] #reason").wait_for()
    page.keyboard.insert_text("by keys")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    assert page.url.endswith("/resourcequotas/ui-by-enter/")


@pytest.mark.usefixtures("only_demo")
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_open_states_are_accessible(visit: Callable[[str], Visitor], axe: Path, theme: str) -> None:
    visitor = visit("editor")
    page = visitor.go(f"{PLACE}/limitranges/limits/")
    visitor.look(theme=theme, size=WIDE)
    page.locator('[name="row-0-max"]').fill("1")
    for tab, shown in (("Diff", "#diff table"), ("Impact", ".owner-lines"), ("History", "ul")):
        show(visitor, HANDS["mouse"], tab)
        page.locator(f".edit-pane:not([hidden]) {shown}").first.wait_for()
        assert visitor.hindrances(axe) == []
        if tab == "Diff":
            page.get_by_role("button", name="Split").click()
            assert visitor.hindrances(axe) == []
    visitor.main("button", "Save").click()
    page.locator("#save-dialog[open] #confirm").wait_for()
    assert visitor.hindrances(axe) == []
