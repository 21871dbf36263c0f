"""Trial of an object with a draft: pasted, a recent one of the namespace, or an example."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from admission.explain.recent_objects import object_of, recent_objects
from admission.models import AuditEvent
from policies import roles
from policies.drafts import preview
from policies.drafts.examples import examples_of, judged_kinds
from policies.manifests.render import render_documents
from policies.models import KeptTest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.http import HttpRequest

    from admission.models import AuditEventQuerySet
    from engine.policy import PolicySet
    from policies.drafts.draft import Draft, PolicyPlace

TRY: Final = "try"
NOT_ON_RECORD: Final = "That object is no longer on record as a whole: choose another."


def choices(request: HttpRequest, place: PolicyPlace, draft: Draft) -> dict[str, Any]:
    """What the page offers to try: recent objects that the reader may see."""
    if place.namespace is None or draft.manifest is None:
        return {}
    found = recent_objects(_decisions(request, place), judged_kinds(draft.manifest))
    return {"recent": found}


def _decisions(request: HttpRequest, place: PolicyPlace) -> AuditEventQuerySet:
    """Those of the namespace, if the reader may see them."""
    events = AuditEvent.objects.for_cluster(place.cluster.name).for_namespace(place.namespace_name)
    return roles.visible(events, request.user, cluster="cluster", namespace="namespace")


def trial(
    request: HttpRequest, place: PolicyPlace, draft: Draft, before: PolicySet | None
) -> dict[str, Any]:
    """Examples, the text of the object, and after a button of the trial its verdicts."""
    manifest = draft.manifest
    examples = examples_of(manifest) if manifest is not None and place.namespace else []
    found: dict[str, Any] = {
        "examples": examples,
        "pod": request.POST.get("pod", ""),
        "may_keep": _may_keep(request, place),
    }
    verb, _, source = request.POST.get("do", "").partition(":")
    if verb != TRY or manifest is None:
        return found
    if source:
        chosen = _chosen(request, place, source, {each.title: each.manifest for each in examples})
        if chosen is None:
            return {**found, "do": TRY, "try_error": NOT_ON_RECORD}
        found |= {"pod": render_documents([dict(chosen)]), "is_chosen": True}
    return {**found, "do": TRY, **preview.tried(manifest, before, found["pod"])}


def _may_keep(request: HttpRequest, place: PolicyPlace) -> bool:
    permission = roles.writing(KeptTest.kind, "add")
    return roles.may(
        request.user, permission, cluster=place.cluster.name, namespace=place.namespace_name
    )


def _chosen(
    request: HttpRequest, place: PolicyPlace, source: str, examples: Mapping[str, Any]
) -> Mapping[str, Any] | None:
    """The example of this name, or the object of the decision that the form names."""
    if source != "recent":
        return examples.get(source)
    event = _decisions(request, place).with_id(request.POST.get("recent", "")).first()
    return object_of(event) if event else None
