"""Kept tests are stored with revisions, bounded, and go with their namespace."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import ValidationError

from policies import services, simulation
from policies.models import KeptTest, Namespace, PolicyRevision
from policies.models.kept import kept_test
from policies.services import kept_tests
from policies.validators import errors_by_path
from tests import factories
from tests.kept_tests import kept, pod

pytestmark = pytest.mark.django_db


def codes(error: ValidationError) -> dict[str, list[str]]:
    found = errors_by_path(error)
    return {path: [each["code"] for each in errors] for path, errors in found.items()}


def refused(document: dict[str, Any]) -> dict[str, list[str]]:
    with pytest.raises(ValidationError) as caught:
        factories.apply(document)
    return codes(caught.value)


def limited(cpu: str = "2") -> Any:
    return factories.limit_range({"type": "Container", "max": {"cpu": cpu}})


def test_a_test_is_kept_changed_and_restored_with_revisions() -> None:
    test = factories.apply(kept())
    assert (test.author, test.revision) == (factories.USER, 1)
    assert not factories.saved(kept()).changed
    factories.apply(kept(expect={"verdict": "allow"}))
    services.delete_kept_test(test=KeptTest.objects.get(), user="ada")
    assert not KeptTest.objects.exists()
    history = PolicyRevision.objects.of(
        cluster="prod", kind="PolicyTest", namespace="team", name="too-large"
    )
    assert [each.action for each in history] == ["delete", "update", "create"]
    services.restore_revision(revision=history.get(number=1), user="bob")
    restored = KeptTest.objects.get()
    assert (restored.revision, restored.to_manifest()) == (4, kept())


def test_a_name_is_taken_once_in_a_namespace() -> None:
    first = factories.apply(kept())
    second = KeptTest(namespace=first.namespace).read_manifest(kept())
    with pytest.raises(ValidationError) as caught:
        services.save_kept_test(test=second, user="ada", expected_revision=0)
    assert "unique_together" in str(codes(caught.value)) or "unique" in str(codes(caught.value))
    factories.apply(kept(namespace="other"))
    assert KeptTest.objects.count() == 2


def test_a_namespace_has_so_many_tests_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_tests, "MOST_TESTS", 2)
    assert kept_test.MOST_TESTS > 2
    for name in ("a", "b"):
        factories.apply(kept(name))
    assert refused(kept("c")) == {"metadata.name": [kept_tests.TOO_MANY]}
    factories.apply(kept("b", expect={"verdict": "allow"}))
    previews = services.preview_many(
        cluster=factories.cluster(), manifests=[kept("a"), kept("c"), kept("d", namespace="n")],
        create_namespaces=True,
    )  # fmt: skip
    assert [each.error and codes(each.error) for each in previews] == [
        None,
        {"metadata.name": [kept_tests.TOO_MANY]},
        None,
    ]


@pytest.mark.parametrize("text", ["\0", "\ud800"])
@pytest.mark.parametrize("where", ["object", "user", "annotations"])
def test_texts_that_no_database_stores_are_refused(text: str, where: str) -> None:
    document = kept(object=pod(labels={"a": text})) if where == "object" else kept()
    if where == "user":
        document["spec"]["user"] = text
    if where == "annotations":
        document["metadata"]["annotations"] = {"a": text}
    assert refused(document)
    assert not KeptTest.objects.exists()


def test_a_deleted_namespace_takes_its_tests_along() -> None:
    factories.apply(kept())
    place = Namespace.objects.get()
    assert services.count_dependents(place)["tests"] == 1
    services.delete_namespace(namespace=place, user="ada")
    assert not KeptTest.objects.exists()
    assert PolicyRevision.objects.filter(kind="PolicyTest", action="delete").count() == 1


def test_a_run_judges_by_stored_policies_or_a_draft_red_ones_first() -> None:
    stored = limited()
    for name, spec in {"b": {}, "a": {}, "c": {"expect": {"verdict": "allow"}}}.items():
        factories.apply(kept(name, **spec))
    found = simulation.run_tests("prod", "team")
    assert [(each.test.name, each.passes) for each in found] == [
        ("c", False), ("a", True), ("b", True),
    ]  # fmt: skip
    draft = stored.to_manifest()
    draft["spec"]["limits"][0]["max"] = {"cpu": "4"}
    found = simulation.run_tests("prod", "team", unsaved=[draft])
    assert [(each.test.name, each.passes) for each in found] == [
        ("a", False), ("b", False), ("c", True),
    ]  # fmt: skip


def test_used_amounts_of_the_ledger_do_not_count_in_a_run() -> None:
    factories.resource_quota({"pods": "2"}, used={"pods": "2"})
    factories.apply(kept(expect={"verdict": "allow"}))
    [found] = simulation.run_tests("prod", "team")
    assert found.passes


def test_a_run_asks_so_many_queries_however_many_tests(
    django_assert_max_num_queries: Any,
) -> None:
    limited()
    for number in range(20):
        factories.apply(kept(f"t{number}"))
    with django_assert_max_num_queries(9):
        assert len(simulation.run_tests("prod", "team")) == 20
