"""What an outage of the portal does, and what it leaves out, is said and chosen in settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from policies.models import Cluster, PolicyRevision
from portal.pages.clusters.webhook_settings import FAILURE_POLICIES
from tests import factories, people

if TYPE_CHECKING:
    from django.test import Client

pytestmark = pytest.mark.django_db
ADDRESS = "/clusters/prod/failure-policy/"
PAGE = "/clusters/prod/settings/"
WHY = "the API server enforces, too"


def send(client: Client, **sent: str) -> Any:
    return client.post(ADDRESS, sent)


def messages_of(client: Client) -> list[str]:
    return [str(message) for message in client.get(PAGE).context["messages"]]


def section(client: Client) -> str:
    whole = client.get(PAGE).content.decode()
    return whole.split('id="failure-policy"')[1].split("</section")[0]


def test_choice_is_saved_with_its_reason_and_takes_effect_by_a_command(
    admin_client: Client,
) -> None:
    factories.cluster()
    response = send(admin_client, failure_policy="Ignore", reason=WHY)
    assert (response.status_code, response["Location"]) == (302, PAGE)
    assert Cluster.objects.get().failure_policy == "Ignore"
    revision = PolicyRevision.objects.latest("pk")
    assert (revision.user, revision.reason) == ("admin", WHY)
    assert revision.after["spec"] == {"failurePolicy": "Ignore"}
    [said] = messages_of(admin_client)
    assert "manage.py cluster_manifests prod" in said


def test_change_without_a_reason_is_none(admin_client: Client) -> None:
    factories.cluster()
    assert send(admin_client, failure_policy="Ignore", reason=" ").status_code == 302
    assert Cluster.objects.get().failure_policy == "Fail"
    assert "reason" in messages_of(admin_client)[0]


def test_choice_that_is_in_force_changes_nothing(admin_client: Client) -> None:
    factories.cluster()
    before = PolicyRevision.objects.count()
    assert send(admin_client, failure_policy="Fail").status_code == 302
    assert (PolicyRevision.objects.count(), messages_of(admin_client)) == (before, [])


@pytest.mark.parametrize("word", ["fail", "", "Open"])
def test_other_words_are_no_choice(admin_client: Client, word: str) -> None:
    factories.cluster()
    assert send(admin_client, failure_policy=word, reason=WHY).status_code == 400
    assert Cluster.objects.get().failure_policy == "Fail"


def test_there_is_nothing_to_look_at(admin_client: Client) -> None:
    factories.cluster()
    assert admin_client.get(ADDRESS).status_code == 405


def test_page_says_what_an_outage_does(client: Client) -> None:
    cluster = factories.cluster()
    client.force_login(people.person("ada"))
    for choice, words in FAILURE_POLICIES.items():
        Cluster.objects.filter(pk=cluster.pk).update(failure_policy=choice)
        others = set(FAILURE_POLICIES.values()) - {words}
        assert words in section(client)
        assert not any(other in section(client) for other in others)


def test_form_offers_both_with_their_meaning(admin_client: Client) -> None:
    factories.cluster()
    found = section(admin_client)
    assert all(words in found for words in FAILURE_POLICIES.values())
    assert 'value="Fail" required checked' in found


EXCLUDED = "/clusters/prod/excluded-namespaces/"


def exclude(client: Client, namespaces: str, reason: str = WHY, shown: str = "") -> Any:
    form = {"namespaces": namespaces, "reason": reason, "shown": shown}
    answer: Any = client.post(EXCLUDED, form)
    return answer


def test_namespaces_are_excluded_with_a_reason_and_by_a_command(admin_client: Client) -> None:
    factories.cluster()
    answer = exclude(admin_client, " scratch, ci  ci ")
    assert (answer.status_code, answer["Location"]) == (302, PAGE)
    assert Cluster.objects.get().excluded_namespaces == ["ci", "scratch"]
    revision = PolicyRevision.objects.latest("pk")
    assert (revision.user, revision.reason) == ("admin", WHY)
    [said] = messages_of(admin_client)
    assert "manage.py cluster_manifests prod" in said
    page = admin_client.get(PAGE).content.decode()
    assert 'value="ci scratch"' in page.split('id="excluded-namespaces"')[1]


@pytest.mark.parametrize(("names", "reason"), [("ci", " "), ("Team", WHY), ("kube-system", WHY)])
def test_what_cannot_be_excluded_changes_nothing(
    admin_client: Client, names: str, reason: str
) -> None:
    factories.cluster()
    before = PolicyRevision.objects.count()
    assert exclude(admin_client, names, reason).status_code == 302
    assert Cluster.objects.get().excluded_namespaces == []
    assert PolicyRevision.objects.count() == before
    assert "Nothing was changed" in messages_of(admin_client)[0]


def test_names_that_somebody_else_changed_meanwhile_stay(admin_client: Client) -> None:
    factories.cluster()
    exclude(admin_client, "ci")
    messages_of(admin_client)
    answer = exclude(admin_client, "scratch")
    assert answer["Location"] == f"{PAGE}?excluded=scratch"
    assert Cluster.objects.get().excluded_namespaces == ["ci"]
    assert "now excluded: ci" in messages_of(admin_client)[0]
    exclude(admin_client, "scratch", shown="ci")
    assert Cluster.objects.get().excluded_namespaces == ["scratch"]


def test_a_wrong_name_is_said_with_its_field(admin_client: Client) -> None:
    factories.cluster()
    page = admin_client.get(exclude(admin_client, "ci Team")["Location"]).content.decode()
    form = page.split('id="excluded-namespaces"')[1]
    assert 'value="ci Team"' in form
    assert '<details class="form" open>' in form
    exclude(admin_client, "ci Team")
    said = messages_of(admin_client)[-1]
    assert 'Nothing was changed. Excluded namespaces: "Team" is no name of a namespace' in said


@pytest.mark.parametrize(
    ("authority", "words"), [("portal", "Nobody enforces"), ("native", "plugins still enforce")]
)
def test_settings_say_who_enforces_in_excluded_namespaces(
    admin_client: Client, authority: str, words: str
) -> None:
    cluster = factories.cluster()
    Cluster.objects.update(authority=authority, excluded_namespaces=["ci"])
    page = admin_client.get(PAGE).content.decode().split('id="excluded-namespaces"')[1]
    assert words in page
    Cluster.objects.update(excluded_namespaces=[])
    page = admin_client.get(PAGE).content.decode().split('id="excluded-namespaces"')[1]
    assert 'always leave out <span class="mono">kube-system' in page
    assert f'<span class="mono">{cluster.portal_namespace}</span>' in page


def test_the_same_names_change_nothing(admin_client: Client) -> None:
    factories.cluster()
    before = PolicyRevision.objects.count()
    assert exclude(admin_client, "", "").status_code == 302
    assert (PolicyRevision.objects.count(), messages_of(admin_client)) == (before, [])
