"""A Python client, generated from the served schema, works against a running portal."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.servers.api_portal import ApiPortal, api_portal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.servers
PACKAGE: Final = "gatehouse_generated"
CONFIGURATION: Final = {
    "post_hooks": [],  # it is not formatted
    "literal_enums": True,
    "content_type_overrides": {"application/yaml": "text/plain"},
}
META: Final = {"name": "mine", "namespace": "team"}
ITEM: Final = {"type": "Pod", "max": {"cpu": "2"}}
RULE: Final = {"policyPredicate": {}, "policyAction": {"updatedLabels": {"a": "b"}}}
# The model, its operations, a body with nothing but what is needed, and a change of it.
KINDS: Final[list[tuple[str, str, dict[str, Any], dict[str, Any]]]] = [
    ("Cluster", "clusters", {"name": "mine"}, {"description": "d"}),
    (
        "Namespace",
        "namespaces",
        {"cluster": "prod", "metadata": {"name": "mine"}},
        {"metadata": {"labels": {"a": "b"}}},
    ),
    (
        "PriorityClass",
        "priorityclasses",
        {"cluster": "prod", "metadata": {"name": "mine"}, "value": 5},
        {"description": "d"},
    ),
    (
        "LimitRange",
        "limitranges",
        {"cluster": "prod", "metadata": META, "spec": {"limits": [ITEM]}},
        {"spec": {"limits": []}},
    ),
    (
        "MetadataPolicy",
        "metadatapolicies",
        {"cluster": "prod", "metadata": META, "spec": {"rules": [RULE]}},
        {"spec": {"strict": True}},
    ),
    (
        "ResourceQuota",
        "resourcequotas",
        {"cluster": "prod", "metadata": META, "spec": {"hard": {"pods": "5"}}},
        {"spec": {"hard": {"pods": None, "services": "3"}}},
    ),
]


class Generated:
    """The client's models and operations, with the portal that they call."""

    def __init__(self, portal: ApiPortal) -> None:
        client = importlib.import_module(f"{PACKAGE}.client")
        self.models = importlib.import_module(f"{PACKAGE}.models")
        self.client = client.AuthenticatedClient(
            base_url=portal.address, token=portal.tokens["admin"], prefix="Token"
        )

    def __call__(self, operation: str, *args: Any, code: int = 200, **more: Any) -> Any:
        """What an operation answers, parsed; its status is described in the schema."""
        tag = operation.partition("_")[0]
        module = importlib.import_module(f"{PACKAGE}.api.{tag}.{operation}")
        answer = module.sync_detailed(*args, client=self.client, **more)
        assert answer.status_code == code, answer.content
        is_problem = isinstance(answer.parsed, self.models.Problem)
        assert is_problem is (code >= 400)
        if answer.content and not isinstance(answer.parsed, str):
            # Nothing is lost or made up; Python writes UTC in another way.
            again = json.dumps(answer.parsed.to_dict()).replace("+00:00", "Z")
            assert json.loads(again) == json.loads(answer.content)
        return answer

    def body(self, name: str, members: dict[str, Any]) -> Any:
        return getattr(self.models, name).from_dict(members)


@pytest.fixture(scope="module")
def portal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiPortal]:
    with api_portal(tmp_path_factory.mktemp("portal")) as started:
        yield started


@pytest.fixture(scope="module")
def call(portal: ApiPortal, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Generated]:
    folder = tmp_path_factory.mktemp("client")
    generate(portal, folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        generated = Generated(portal)
        with generated.client:
            yield generated


def generate(portal: ApiPortal, folder: Path) -> None:
    """Write the client's package into a folder."""
    (folder / "openapi.json").write_text(json.dumps(portal.ask("GET", "/api/schema/?format=json")))
    (folder / "config.json").write_text(json.dumps(CONFIGURATION))
    words = [sys.executable, "-m", "openapi_python_client", "generate", "--meta", "none"]
    words += ["--path", "openapi.json", "--config", "config.json", "--output-path", PACKAGE]
    done = subprocess.run(  # noqa: S603 - our own words
        words, cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WARNING" not in done.stdout + done.stderr


def without_warnings(parsed: Any) -> dict[str, Any]:
    """The members of an object beside the hints, which only answers to writes have."""
    return {name: value for name, value in parsed.to_dict().items() if name != "warnings"}


@pytest.mark.parametrize(("model", "plural", "needed", "change"), KINDS)
def test_an_object_is_made_read_found_changed_and_deleted(
    call: Generated, model: str, plural: str, needed: dict[str, Any], change: dict[str, Any]
) -> None:
    made = call(f"{plural}_create", body=call.body(f"{model}Request", needed), code=201)
    key = "mine" if model == "Cluster" else made.parsed.id
    read = call(f"{plural}_retrieve", key)
    assert without_warnings(read.parsed) == without_warnings(made.parsed)
    assert read.parsed.revision == 1

    whole = call.body(f"{model}ReplacementRequest", {**needed, "reason": "again"})
    assert call(f"{plural}_update", key, body=whole, if_match='"1"').parsed.revision == 1
    patch = call.body(f"Patched{model}Request", change)
    etag = read.headers["ETag"]
    changed = call(f"{plural}_partial_update", key, body=patch, if_match=etag).parsed
    assert changed.revision == 2
    stale = call(f"{plural}_partial_update", key, body=patch, if_match='"1"', code=412)
    assert (stale.parsed.etag, stale.parsed.revision) == ('"2"', 2)

    place = {} if model == "Cluster" else {"cluster": "prod"}
    found = call(f"{plural}_list", name_exact="mine", name_in=["mine"], **place).parsed
    assert [without_warnings(each) for each in found.results] == [without_warnings(changed)]
    call(f"{plural}_destroy", key, dry_run="All")
    call(f"{plural}_destroy", key, if_match='"2"', code=204)
    call(f"{plural}_retrieve", key, code=404)


def test_models_are_made_without_dummies(call: Generated) -> None:
    models = call.models
    spec = models.LimitRangeSpecRequest(limits=[models.LimitRangeItemRequest(type_="Pod")])
    body = models.LimitRangeRequest(
        cluster="prod",
        metadata=models.MetadataRequest(name="typed", namespace="team"),
        spec=spec,
    )
    made = call("limitranges_create", body=body, dry_run="All", code=201).parsed
    assert (made.id, made.spec.limits[0].type_) == (None, "Pod")


def test_mistakes_are_typed_problems(call: Generated) -> None:
    body = call.body(
        "ResourceQuotaRequest", {"cluster": "prodd", **KINDS[-1][2] | {"cluster": "x"}}
    )
    problem = call("resourcequotas_create", body=body, code=400).parsed
    assert problem.errors["cluster"][0].code == "unknown_cluster"


def test_decisions_and_their_explanations_are_read(call: Generated) -> None:
    denied = call("decisions_list", verdict="denied", reason="MaxConstraint").parsed.results
    decision = call("decisions_retrieve", denied[0].id).parsed
    assert (decision.operation, decision.violations[0].policy.kind) == ("CREATE", "LimitRange")
    explanation = call("decisions_explanation_retrieve", denied[0].id).parsed
    assert explanation.today.violations[0].policy.kind == "LimitRange"
    assert call("decisions_list", limit=1).parsed.next_


@pytest.mark.parametrize(
    "operation",
    ["charges_list", "credentials_list", "limitedresources_list", "revisions_list",
     "rolechanges_list"],
)  # fmt: skip
def test_every_other_list_is_read(call: Generated, operation: str) -> None:
    assert call(operation).parsed.count > 0


def test_a_namespace_and_an_object_are_looked_at(call: Generated) -> None:
    [namespace] = call("namespaces_list", cluster="prod", name_exact="team").parsed.results
    policies = call("namespaces_effective_retrieve", namespace.id).parsed.policies
    assert {policy.manifest.kind for policy in policies} == {
        "LimitRange", "MetadataPolicy", "ResourceQuota",
    }  # fmt: skip
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": []}}
    body = {"cluster": "prod", "namespace": "team", "object": pod}
    export = call("clusters_export_retrieve", "prod", kind=["PriorityClass"])
    assert "kind: PriorityClass" in export.parsed
    found = call("simulations_create", body=call.body("SimulationRequestRequest", body)).parsed
    assert found.decision.trace
