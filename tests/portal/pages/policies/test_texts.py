"""Texts that others chose: hostile ones stay text, and what servers accept is saved unchanged."""

from __future__ import annotations

import html
import json
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from policies import services
from policies.manifests.bundle import read_bundle
from policies.manifests.documents import ManifestError
from policies.manifests.sources import Source
from policies.models import PolicyRevision
from tests import factories
from tests.people import person

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.django_db
HOSTILE = (
    "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "</textarea><script>x</script>",
    "' onmouseover='x", "{{ 7*7 }}", "{% csrf_token %}", "javascript:alert(1)", "<!--", "]]>",
    "\u202egnp.exe", "\u2028\u2029", "a\r\nb", "=cmd|' /C calc'!A0", "&lt;b&gt;", "%3Cscript%3E",
    "<svg/onload=x>", "\\u003cscript\\u003e", "' or 1=1 --", "\ufeff\u200b", "x" * 5000,
)  # fmt: skip
SAMPLE = 30
"""Every so many of the corpus; all of it takes half a minute."""


def opened(client: Client, page: str) -> dict[str, str]:
    response: Any = client.get(page)
    assert response.status_code == 200
    state = response.context["state"]
    seen = str(response.context["revision"])
    return {"seen": seen, "shown": state.shown, "yaml": state.draft.text, "reason": "same"}


@pytest.mark.sampled
@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_stays_text(client: Client, text: str) -> None:
    selector = {"matchExpressions": [{"key": "a", "operator": "In", "values": [text]}]}
    rule = {
        "policyPredicate": {"annotationSelector": selector},
        "policyAction": {"updatedAnnotations": {"b": text}},
    }
    factories.metadata_policy(rule, annotations={"note": text})
    client.force_login(person("ed", "editor"))
    page = "/clusters/prod/namespaces/team/metadatapolicies/mp/"
    for address in (page, f"{page}revisions/", f"{page}revisions/1/"):
        content = client.get(address).content.decode()
        assert not [
            bad for bad in ("<script>x", "<script>alert", "<img", "<svg/") if bad in content
        ]
    assert client.post(page, {**opened(client, page), "do": "save"}).status_code == 302
    assert PolicyRevision.objects.filter(kind="MetadataPolicy").count() == 1


def accepted(shared: Path) -> list[dict[str, Any]]:
    """Manifests of the corpus that an API server accepted and that can be stored."""
    found = []
    for kind in ("limitrange", "quota"):
        cases = json.loads((shared / "vectors" / f"corpus_{kind}_oracle.json").read_text())
        found += [case["manifest"] for case in cases if case["expected"].get("valid")]
    return found


def check_unchanged(client: Client, manifests: list[dict[str, Any]]) -> None:
    cluster = factories.cluster()
    for number, manifest in enumerate(manifests):
        # Two files may say one name, and not all of a quota may change.
        metadata = {**manifest["metadata"], "namespace": f"of-{number}"}
        try:
            bundle = read_bundle([Source("corpus", json.dumps({**manifest, "metadata": metadata}))])
        except ManifestError:
            continue  # an unknown field, which a strict reader refuses
        for wanted in bundle.objects:
            kind, namespace, name = wanted.key
            saved = services.apply_manifest(
                cluster=cluster, manifest=wanted.manifest, user="c", create_namespace=True
            )
            plural = f"{kind.lower()}s"
            page = f"/clusters/prod/namespaces/{namespace}/{plural}/{name}/"
            assert client.post(page, {**opened(client, page), "do": "save"}).status_code == 302
            stored = services.find_object(cluster, kind=kind, name=name, namespace=namespace)
            assert stored.revision == saved.instance.revision, page


@pytest.mark.oracle
def test_sample_of_the_corpus_opens_and_saves_unchanged(client: Client, shared: Path) -> None:
    client.force_login(person("ed", "editor"))
    check_unchanged(client, accepted(shared)[::SAMPLE])


@pytest.mark.long
@pytest.mark.oracle
def test_corpus_opens_and_saves_unchanged(client: Client, shared: Path) -> None:
    client.force_login(person("ed", "editor"))
    check_unchanged(client, accepted(shared))


@pytest.mark.parametrize("do", ["check", "save"])
def test_an_amount_that_is_none_is_told_at_its_field(do: str) -> None:
    factories.resource_quota({"pods": "5"})
    client = Client()
    client.force_login(person("ed", "editor", cluster="prod", namespace="team"))
    page = "/clusters/prod/namespaces/team/resourcequotas/rq/"
    given = {**opened(client, page), "form": "on", "name": "rq", "enforcement": "enforce"}
    line = {"hard-0-resource": "pods", "hard-0-amount": "ten", "reason": "because", "do": do}
    answer: Any = client.post(page, {**given, **line})
    shown = html.unescape(answer.content.decode())
    assert (
        'Invalid value: "ten": quantities must match' in shown.split('id="hard-0-amount-wrong"')[1]
    )
