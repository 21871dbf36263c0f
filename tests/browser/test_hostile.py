"""200 hostile texts in every stored text: no script runs, and no page overflows a phone."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser import demo_portal
from tests.browser.hands import HANDS
from tests.browser.hostile import TEXTS
from tests.browser.visitor import PHONE, Visitor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser

pytestmark = pytest.mark.ui
CLUSTER = "/clusters/hostile"
PAGES = {
    "home": "/",
    "clusters": "/clusters/",
    "cluster": f"{CLUSTER}/",
    "objects": f"{CLUSTER}/objects/",
    "ownership": f"{CLUSTER}/ownership/",
    "runs": f"{CLUSTER}/runs/",
    "run": f"{CLUSTER}/runs/{{run}}/",
    "authority": f"{CLUSTER}/authority/",
    "namespaces": f"{CLUSTER}/namespaces/",
    "namespace": f"{CLUSTER}/namespaces/team/",
    "quota board": "/quotas/",
    "quota story": "/quotas/hostile/team/",
    "policies": "/policies/?cluster=hostile",
    "priority classes": "/policies/?cluster=hostile&kind=PriorityClass",
    "limit range": f"{CLUSTER}/namespaces/team/limitranges/limits/",
    "quota": f"{CLUSTER}/namespaces/team/resourcequotas/limits/",
    "metadata policy": f"{CLUSTER}/namespaces/team/metadatapolicies/limits/",
    "versions": f"{CLUSTER}/namespaces/team/limitranges/limits/revisions/",
    "versions compared": f"{CLUSTER}/namespaces/team/limitranges/limits/revisions/?a=1&b=9",
    "version": f"{CLUSTER}/namespaces/team/limitranges/limits/revisions/4/",
    "priority class": f"{CLUSTER}/priorityclasses/p-7/",
    "people": "/people/",
    "account": "/account/",
    "decisions": "/decisions/",
    "decisions, searched": "/decisions/?q=%3Cscript%3Ealert(1)%3C%2Fscript%3E",
    "decisions, of a strange name": "/decisions/?name=%22%3E%3Cimg+src%3Dx+onerror%3Dalert(1)%3E",
    "decisions, older": "/decisions/?before={middle}",
    "decisions, oldest": "/decisions/?before={last}",
    "found": "/find/all/?q=%3Cscript%3E",
}


@pytest.fixture(scope="module")
def hostile(
    chromium: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[demo_portal.Portal]:
    """A separate portal, so that other tests do not see the texts."""
    with demo_portal.portal(tmp_path_factory.mktemp("hostile")) as started:
        yield started


@pytest.fixture(scope="module")
def planted(hostile: demo_portal.Portal) -> dict[str, Any]:
    locations = hostile.run("hostile_world")
    ids = locations["decisions"]
    return {**locations, "middle": ids[len(ids) // 3], "last": ids[2 * len(ids) // 3]}


@pytest.fixture(scope="module")
def state(hostile: demo_portal.Portal, planted: dict[str, Any], browser: Browser) -> Any:
    visitor = Visitor(browser, hostile.address)
    visitor.sign_in("admin", demo_portal.PASSWORD, HANDS["mouse"])
    return visitor.context.storage_state()


@pytest.fixture
def visitor(hostile: demo_portal.Portal, browser: Browser, state: Any) -> Iterator[Visitor]:
    come = Visitor(browser, hostile.address, state)
    come.look(theme="light", size=PHONE)
    yield come
    come.leave()


def withstands(visitor: Visitor, path: str) -> list[str]:
    """Visit a page; returns one line per error."""
    visitor.go(path)
    wide = visitor.overflow()
    assert not visitor.page.evaluate("'broken' in document.documentElement.dataset"), path
    assert visitor.page.locator("main h1, [role=option], body > p").first.is_visible()
    return [f"{path}: {wide}"] if wide else []


def test_there_are_200_of_them() -> None:
    assert len(TEXTS) == len(set(TEXTS)) == 200


@pytest.mark.sampled
@pytest.mark.parametrize("name", PAGES)
def test_page_shows_them_as_texts(visitor: Visitor, planted: dict[str, Any], name: str) -> None:
    assert withstands(visitor, PAGES[name].format(**planted)) == []


def test_each_decision_is_shown_as_texts(visitor: Visitor, planted: dict[str, Any]) -> None:
    found = [
        line for id_ in planted["decisions"] for line in withstands(visitor, f"/decisions/{id_}")
    ]
    assert found == []


@pytest.mark.sampled
@pytest.mark.parametrize("number", range(0, 200, 20))
def test_object_is_shown_as_texts(visitor: Visitor, planted: dict[str, Any], number: int) -> None:
    assert withstands(visitor, f"{CLUSTER}/objects/LimitRange/team/o-{number}/") == []


def test_a_name_on_top_of_each_page_is_a_text(
    hostile: demo_portal.Portal, browser: Browser, planted: dict[str, Any]
) -> None:
    for name in planted["users"]:
        visitor = Visitor(browser, hostile.address)
        visitor.look(theme="light", size=PHONE)
        visitor.sign_in(name, demo_portal.PASSWORD, HANDS["mouse"])
        assert withstands(visitor, "/clusters/") == []
        visitor.leave()


def test_no_cell_of_an_export_is_computed(visitor: Visitor, planted: dict[str, Any]) -> None:
    answer = visitor.context.request.get("/decisions/export.csv?last=24h")
    assert answer.ok
    cells = [cell for row in csv.reader(io.StringIO(answer.text(), newline="")) for cell in row]
    assert len(cells) > 200 * 10
    assert [cell for cell in cells if cell.startswith(("=", "+", "-", "@", "\t", "\r"))] == []
