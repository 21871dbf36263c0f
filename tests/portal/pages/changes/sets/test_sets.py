"""The pages of changes: listed, made, shown in words, and every button with its refusals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from policies.models import ChangeSet, LimitRange, Namespace
from policies.services import changes
from portal.pages.changes.sets import timeline
from tests import factories, people
from tests.changes import change_of, cpu, limit, published, put
from tests.people import signed_in

if TYPE_CHECKING:
    from django.test import Client

pytestmark = pytest.mark.django_db
LIST = "/changes/"
NEW = f"{LIST}-/new/"


@pytest.fixture(autouse=True)
def _team() -> None:
    factories.namespace()


@pytest.fixture
def editor() -> Client:
    return signed_in(people.person("ed", "editor"))


def page_of(change: ChangeSet) -> str:
    return f"{LIST}{change.pk}/"


def diff_of(change: ChangeSet) -> str:
    return f"{page_of(change)}diff/"


def do(client: Client, change: ChangeSet, button: str, **fields: str) -> Any:
    is_of_object = button.startswith(("takeout", "merge"))
    address = diff_of(change) if is_of_object else page_of(change)
    return client.post(address, {"do": button, **fields})


def buttons(client: Client, change: ChangeSet) -> set[str]:
    """The steps that the page offers."""
    text = client.get(page_of(change)).content.decode()
    verbs = ("abandon", "withdraw", "submit", "publish", "revert", "comment", "describe")
    return {verb for verb in verbs if f'value="{verb}"' in text}


def state_of(change: ChangeSet) -> str:
    change.refresh_from_db()
    return change.state


def test_without_changes_the_list_says_what_they_are_for(editor: Client) -> None:
    page = editor.get(LIST).content.decode()
    assert NEW in page
    assert "<table" not in page


def test_the_list_is_searched_and_leads_to_a_change(editor: Client) -> None:
    change = change_of(limit())
    changes.describe_change(change, description={"ticket": "PLAT-7"}, user="ada")
    for words, is_found in (("lower", True), ("PLAT-7", True), ("ada", True), ("other", False)):
        text = editor.get(LIST, {"q": words}).content.decode()
        assert (page_of(change) in text) is is_found, words


def test_a_change_is_made_and_wrong_fields_are_named(editor: Client) -> None:
    wrong = editor.post(NEW, {"title": " ", "reason": "r", "ticket": "javascript:x"})
    assert wrong.status_code == 422
    assert set(wrong.context["wrong"]) == {"title", "ticket"}
    made = editor.post(NEW, {"title": "Lower it", "reason": "r", "ticket": "A-1"})
    change = ChangeSet.objects.get()
    assert (made.status_code, made["Location"]) == (302, page_of(change))
    assert (change.title, change.author) == ("Lower it", "ed")
    assert "No policy yet" in editor.get(page_of(change)).content.decode()


def test_objects_are_shown_in_words_and_side_by_side(editor: Client) -> None:
    factories.apply(limit("1"))
    change = change_of(limit("2"), limit(name="new"))
    first, new = editor.get(diff_of(change)).context["lines"]
    assert first.words == ["cpu max of Container raised from 1 to 2"]
    assert (first.differences.added, first.differences.removed) == (1, 1)
    assert new.differences.removed == 0
    assert "/limitranges/new/" not in editor.get(diff_of(change)).content.decode()


def test_a_change_is_submitted_published_and_reverted_by_its_buttons(editor: Client) -> None:
    factories.apply(limit("1"))
    change = change_of(limit("2"))
    seen = {"seen": change.content_hash}
    assert buttons(editor, change) == {"abandon", "submit", "comment", "describe"}
    assert do(editor, change, "submit", **seen).status_code == 302
    assert buttons(editor, change) == {"abandon", "withdraw", "publish", "comment", "describe"}
    assert do(editor, change, "publish", **seen).status_code == 302
    assert (state_of(change), cpu()) == ("done", "2")
    assert buttons(editor, change) == {"revert", "comment"}
    assert do(editor, change, "revert").status_code == 302
    assert (state_of(change), cpu()) == ("reverted", "1")
    assert buttons(editor, change) == {"comment"}


def test_a_change_is_withdrawn_described_commented_and_abandoned(editor: Client) -> None:
    change = changes.submit(change_of(limit()), user="ada")
    do(editor, change, "withdraw")
    assert state_of(change) == "draft"
    do(editor, change, "describe", title="Other", reason="r", ticket="")
    do(editor, change, "comment", note="hm")
    do(editor, change, "abandon")
    assert (state_of(change), change.title) == ("abandoned", "Other")
    text = editor.get(page_of(change)).content.decode()
    assert "commented" in text
    assert "hm" in text
    assert do(editor, change, "comment", note=" ").status_code == 422


def test_only_the_content_that_the_page_showed_is_submitted(editor: Client) -> None:
    change = change_of(limit())
    seen = change.content_hash
    put(change, limit("9"))
    refused = do(editor, change, "submit", seen=seen)
    assert refused.status_code == 409
    assert "edited meanwhile" in refused.content.decode()
    assert state_of(change) == "draft"


def test_a_moved_base_is_shown_refused_and_merged(editor: Client) -> None:
    factories.apply(limit("1"))
    change = change_of(limit("2"))
    item = change.items.get().pk
    changes.submit(change, user="ada")
    factories.apply(limit("1", labels={"a": "b"}))
    refused = do(editor, change, "publish")
    assert refused.status_code == 409
    assert "LimitRange team/lr of prod: is at revision 2" in refused.content.decode()
    assert cpu() == "1"
    assert f'value="merge:{item}"' in editor.get(diff_of(change)).content.decode()
    do(editor, change, f"merge:{item}")
    assert state_of(change) == "draft"
    assert change.items.get().content == limit("2", labels={"a": "b"})


def test_a_conflict_is_named_and_a_side_is_chosen(editor: Client) -> None:
    factories.apply(limit("1"))
    change = change_of(limit("2"))
    item = change.items.get().pk
    factories.apply(limit("3"))
    text = editor.get(diff_of(change)).content.decode()
    assert "spec.limits.Container.max.cpu" in text
    assert f'value="merge:{item}:mine"' in text
    assert do(editor, change, f"merge:{item}").status_code == 409
    do(editor, change, f"merge:{item}:mine")
    assert change.items.get().base == limit("3")


def test_an_object_is_taken_out(editor: Client) -> None:
    change = change_of(limit(), limit(name="other"))
    other = change_of(limit(name="x"))
    do(editor, change, f"takeout:{change.items.get(name='lr').pk}")
    assert [item.name for item in change.items.all()] == ["other"]
    assert do(editor, change, f"takeout:{other.items.get().pk}").status_code == 422
    assert other.items.exists()


def test_a_viewer_reads_and_comments_and_no_more() -> None:
    viewer = signed_in(people.person("vi"))
    change = change_of(limit())
    assert buttons(viewer, change) == {"comment"}
    assert viewer.get(NEW).status_code == 403
    item = change.items.get().pk
    for button in ("submit", "withdraw", "abandon", "publish", "revert", "describe"):
        assert do(viewer, change, button).status_code == 403, button
    for button in (f"takeout:{item}", f"merge:{item}"):
        assert do(viewer, change, button).status_code == 403, button
    assert do(viewer, change, "comment", note="hm").status_code == 302
    assert do(viewer, change, "unheard-of").status_code == 404
    assert state_of(change) == "draft"


def test_hidden_objects_are_counted_and_hidden_changes_are_not_there() -> None:
    factories.namespace("other")
    change = change_of(limit(), limit(name="secret", namespace="other"))
    elsewhere = change_of(limit(name="secret", namespace="other"))
    client = signed_in(people.person("t", "editor", cluster="prod", namespace="team"))
    text = client.get(page_of(change)).content.decode()
    assert "1 more object in places that you do not see" in text
    assert "secret" not in text
    assert buttons(client, change) == {"comment"}
    for address in (page_of(elsewhere), f"{LIST}99999999999999999999/", f"{LIST}x/"):
        assert client.get(address).status_code == 404


def test_a_published_change_shows_no_base_as_moved(editor: Client) -> None:
    change = published(change_of(limit()))
    [line] = editor.get(diff_of(change)).context["lines"]
    assert line.moved is None
    assert LimitRange.objects.exists()


def fleet_change(number: int) -> ChangeSet:
    """A change of one policy in each of so many namespaces."""
    cluster = factories.cluster()
    names = [f"ns-{index:04}" for index in range(number)]
    Namespace.objects.bulk_create(Namespace(cluster=cluster, name=name) for name in names)
    return change_of(*(limit(namespace=name) for name in names))


@pytest.mark.parametrize("tab", ["", "diff/", "replay/", "tests/", "timeline/"])
def test_a_tab_takes_as_many_queries_for_many_objects_as_for_few(
    editor: Client, django_assert_num_queries: Any, tab: str
) -> None:
    few = fleet_change(5)
    with CaptureQueriesContext(connection) as taken:
        editor.get(f"{page_of(few)}{tab}")
    Namespace.objects.filter(name__startswith="ns-").delete()
    many = fleet_change(500)
    with django_assert_num_queries(len(taken)):
        editor.get(f"{page_of(many)}{tab}")


def test_equal_changes_of_many_namespaces_are_one_line(editor: Client) -> None:
    many = fleet_change(12)
    put(many, limit("9", namespace="team"))
    contents = editor.get(page_of(many)).context["contents"]
    together, alone = contents.lines
    assert (len(together.all_places), len(together.places), together.further) == (12, 8, 4)
    assert alone.all_places == [("prod", "team")]
    assert (contents.number, contents.clusters) == (13, ["prod"])
    assert (contents.added, contents.removed) == (13 * 10, 0)


def test_amounts_that_change_stand_beside_each_other(editor: Client) -> None:
    factories.apply(limit("1"))
    page = editor.get(page_of(change_of(limit("2"))))
    assert 'cpu max of Container raised <b class="amounts">1 → 2</b>' in page.content.decode()


def test_the_timeline_names_people_and_takes_comments(editor: Client) -> None:
    change = change_of(limit())
    ada = people.person("ada")
    ada.first_name, ada.last_name = "Ada", "Okafor"
    ada.save()
    address = f"{page_of(change)}timeline/"
    commented = editor.post(address, {"do": "comment", "note": "hm"})
    assert (commented.status_code, commented["Location"]) == (302, address)
    page = editor.get(address)
    assert [(each.person.name, each.person.initials) for each in page.context["lines"]] == [
        ("Ada Okafor", "AO"), ("ed", "ED"),
    ]  # fmt: skip
    assert editor.post(address, {"do": "publish"}).status_code == 404


def test_the_diff_is_searched(editor: Client) -> None:
    change = change_of(limit(), limit(name="other"))
    [line] = editor.get(f"{diff_of(change)}?q=oth").context["lines"]
    assert line.item.name == "other"
    assert "No object matches" in editor.get(f"{diff_of(change)}?q=zz").content.decode()


def test_the_diff_has_each_object_on_one_of_its_pages(editor: Client) -> None:
    change = change_of(*(limit(name=f"lr-{number:02}") for number in range(60)))
    names = []
    for page in (1, 2):
        shown = editor.get(diff_of(change), {"rows": "50", "page": page})
        names += [line.item.name for line in shown.context["lines"]]
    assert names == [f"lr-{number:02}" for number in range(60)]


def test_a_long_timeline_has_its_last_steps_and_counts_the_others(
    editor: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = change_of(limit())
    for note in ("one", "two", "three"):
        changes.comment(change, user="ada", note=note)
    monkeypatch.setattr(timeline, "MOST_LISTED", 2)
    page = editor.get(f"{page_of(change)}timeline/")
    assert [each.step.note for each in page.context["lines"]] == ["two", "three"]
    assert "2 steps before these" in page.content.decode()
