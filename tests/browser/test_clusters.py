"""Journeys of clusters: connect one, take ownership, resolve a conflict."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.hands import Clicks
from tests.browser.test_pages import look_around
from tests.sync.fake_api import fake_api

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.browser.demo_portal import Portal
    from tests.browser.hands import Hand
    from tests.browser.visitor import Visitor
    from tests.sync.fake_api import FakeAPI

pytestmark = pytest.mark.ui
QUOTA = "objects/ResourceQuota/team/compute/"


@pytest.fixture
def api() -> Iterator[FakeAPI]:
    """A small cluster with one namespace and one quota."""
    with fake_api() as made:
        for name in ("kube-system", "team"):
            made.store.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        made.store.put(quota("10"))
        yield made


def quota(pods: str) -> dict[str, Any]:
    metadata = {"name": "compute", "namespace": "team"}
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": metadata,
        "spec": {"hard": {"pods": pods}},
    }


def kubeconfig(api: FakeAPI) -> str:
    found = api.credentials
    authority = b64encode(found.ca or b"").decode()
    cluster = {"server": found.server, "certificate-authority-data": authority}
    context = {"cluster": "c", "user": "u"}
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": {"token": found.token}}],
            "contexts": [{"name": "here", "context": context}],
            "current-context": "here",
        }
    )


def connect(visitor: Visitor, hand: Hand, name: str, api: FakeAPI) -> None:
    visitor.go("/clusters/")
    hand.press(visitor.main("link", "Connect a cluster"))
    hand.fill(visitor.page.get_by_label("Name", exact=True), name)
    hand.fill(visitor.page.get_by_role("textbox", name="Kubeconfig"), kubeconfig(api))
    hand.press(visitor.main("button", "Test"))
    visitor.page.get_by_role("heading", name=f"Test of {name}").wait_for()
    hand.press(visitor.main("button", "Connect"))
    visitor.page.wait_for_url(f"**/clusters/{name}/setup/")
    visitor.until(f"/clusters/{name}/objects/?state=all", "team / compute")


def confirm(visitor: Visitor, hand: Hand, button: str) -> None:
    """Press a button with a confirmation, and confirm."""
    hand.press(visitor.main("button", button))
    hand.press(visitor.page.get_by_role("dialog").get_by_role("button", name=button))


def test_cluster_is_connected_and_a_conflict_resolved(
    visit: Callable[[str], Visitor], hand: Hand, portal: Portal, api: FakeAPI, tmp_path: Path
) -> None:
    visitor, name = visit("admin"), f"shop-{type(hand).__name__.lower()}"
    connect(visitor, hand, name, api)
    visitor.go(f"/clusters/{name}/ownership/")
    confirm(visitor, hand, "Take ownership")
    visitor.page.get_by_text("everything in the cluster").wait_for()
    visitor.until(f"/clusters/{name}/{QUOTA}", "in-sync")
    api.store.put(quota("30"), "kubectl-edit")
    (tmp_path / "ours.json").write_text(json.dumps(quota("20")))
    # By force: what came from the cluster is not set back in silence.
    file = str(tmp_path / "ours.json")
    portal.manage("import_manifests", file, "--cluster", name, "--force")
    visitor.until(f"/clusters/{name}/{QUOTA}", "Write these choices")
    hand.tick(visitor.page.get_by_role("radio", name="theirs: 30"))
    hand.fill(visitor.page.get_by_label("Reason (kept on record)"), "they know better")
    confirm(visitor, hand, "Write these choices")
    visitor.page.wait_for_url("**/runs/**")
    visitor.until(f"/clusters/{name}/{QUOTA}", "in-sync")
    assert api.store.find("ResourceQuota", "team", "compute").manifest["spec"] == {
        "hard": {"pods": "30"}
    }
    assert visitor.page.get_by_text("they know better").first.is_visible()


def test_picked_clusters_are_paused_with_a_reason_and_resumed_by_undo(
    visit: Callable[[str], Visitor], hand: Hand, api: FakeAPI, axe: Path
) -> None:
    visitor, name = visit("admin"), f"many-{type(hand).__name__.lower()}"
    connect(visitor, hand, name, api)
    page = visitor.go("/clusters/")
    bar = page.get_by_role("form", name="Selected clusters")
    assert not bar.is_visible()
    for each in ("demo", name):
        hand.tick(page.get_by_role("checkbox", name=f"Select {each}", exact=True))
    assert bar.get_by_role("status").inner_text() == "2 selected"
    hand.press(bar.get_by_role("button", name="Pause…"))
    sheet = page.get_by_role("dialog", name="Pause sync of 1 cluster")
    sheet.get_by_text("not connected").wait_for()
    assert visitor.hindrances(axe) == []
    hand.fill(sheet.get_by_label("Reason, shown while they are paused"), "only to see")
    with page.expect_navigation():
        hand.press(sheet.get_by_role("button", name="Pause"))
    page.get_by_text("1 cluster paused. Left out: demo (not connected).").wait_for()
    state = page.get_by_role("row", name=name).locator(".state")
    assert state.inner_text() == "paused"
    page.get_by_role("button", name="Undo").focus()  # while it has the focus, the toast stays
    with page.expect_navigation():
        page.keyboard.press("Enter")
    page.get_by_text("Undone for 1 cluster.").wait_for()
    assert state.inner_text() == "reachable"


def test_a_refused_kubeconfig_shows_the_reason(visit: Callable[[str], Visitor], hand: Hand) -> None:
    visitor = visit("admin")
    visitor.go("/clusters/-/connect/")
    hand.fill(visitor.page.get_by_label("Name", exact=True), "shop-none")
    hand.fill(visitor.page.get_by_role("textbox", name="Kubeconfig"), "users: [")
    hand.press(visitor.main("button", "Test"))
    alert = visitor.page.get_by_role("alert")
    alert.wait_for()
    assert "Nothing was stored" in alert.inner_text()
    # The tab keeps what was pasted; no answer repeats it.
    assert visitor.page.get_by_role("textbox", name="Kubeconfig").input_value() == "users: ["


@pytest.mark.parametrize("name", ["viewer", "editor", "other", "approver"])
def test_only_an_admin_connects(visit: Callable[[str], Visitor], name: str) -> None:
    visitor = visit(name)
    visitor.go("/clusters/-/connect/")
    assert visitor.page.get_by_role("textbox", name="Kubeconfig").count() == 0
    assert visitor.post("/clusters/-/connect/", name="x", text="x") == 403


@pytest.mark.parametrize(
    ("name", "seen", "sent"),
    [("viewer", 200, 403), ("editor", 404, 404), ("other", 404, 404), ("approver", 200, 409)],
)
def test_a_conflict_is_resolved_by_permitted_users(
    visit: Callable[[str], Visitor], name: str, seen: int, sent: int
) -> None:
    visitor, path = visit(name), "/clusters/demo-connected/objects/LimitRange/search/limits/"
    visitor.go(path, status=seen)
    assert visitor.page.get_by_role("button", name="Take all of theirs").count() == (sent == 409)
    # The form lacks the shown version, so that even permitted users change nothing.
    assert visitor.post(path, take="theirs") == sent


def opened_drift(visitor: Visitor) -> None:
    """Open the row of the drifted quota to both sides."""
    visitor.go("/drift/")
    row = visitor.page.get_by_role("row", name="checkout / compute")
    row.get_by_role("link", name="compute").click()
    visitor.page.get_by_role("region", name="Cluster").wait_for()


def test_drift_is_settled_in_four_clicks_and_undone(
    visit: Callable[[str], Visitor], hand: Hand
) -> None:
    visitor = visit("admin")
    page, clicks = visitor.go("/"), Clicks(hand)
    navigation = page.get_by_role("navigation", name="Main")
    clicks.press(navigation.get_by_role("link", name="Drift"))
    page.wait_for_url("**/drift/")
    clicks.press(page.get_by_role("row", name="checkout / compute").locator("summary"))
    clicks.press(page.get_by_role("link", name="Restore the portal's version").first)
    dialog = page.get_by_role("dialog")
    hand.fill(dialog.get_by_label("Reason (kept on record)"), "nobody asked for it")
    clicks.press(dialog.get_by_role("button", name="Restore"))
    page.get_by_text("Restored: ResourceQuota checkout/compute").wait_for()
    assert clicks.number <= 4
    assert page.get_by_role("row", name="checkout / compute").count() == 0
    visitor.go("/clusters/demo-connected/objects/ResourceQuota/checkout/compute/")
    confirm(visitor, hand, "Undo this resolution")
    page.wait_for_url("**/runs/**")
    visitor.go("/drift/")
    assert page.get_by_role("row", name="checkout / compute").count() == 1


def test_an_open_row_shows_both_sides_and_follows_keys(visit: Callable[[str], Visitor]) -> None:
    visitor = visit("admin")
    opened_drift(visitor)
    page = visitor.page
    assert page.get_by_role("region", name="Portal").locator("mark").inner_text() == "6"
    assert page.get_by_role("region", name="Cluster").locator("mark").inner_text() == "8"
    page.get_by_role("row", name="checkout / compute").first.focus()
    page.keyboard.press("x")
    bar = page.get_by_role("region", name="Selected rows")
    bar.get_by_text("1 selected").wait_for()
    bar.get_by_role("button", name="Accept the cluster's version").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Reason (kept on record)").wait_for()
    page.keyboard.press("Escape")
    dialog.wait_for(state="detached")


def test_open_states_of_drift_are_accessible(visit: Callable[[str], Visitor], axe: Path) -> None:
    visitor = visit("admin")
    opened_drift(visitor)
    look_around(visitor, axe)
    visitor.page.get_by_role("link", name="Release ownership").last.click()
    visitor.page.get_by_role("dialog").get_by_label("Reason (kept on record)").wait_for()
    look_around(visitor, axe)
