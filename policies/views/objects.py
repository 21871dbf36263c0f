"""One object that both sides may have: what was agreed on, ours, theirs, and what to do."""

from __future__ import annotations

from typing import Any

from django.shortcuts import get_object_or_404

from policies import services
from policies.models import SyncedObject
from policies.views.access import ClusterPage
from policies.views.addresses import NO_NAMESPACE
from policies.views.listing import STATE_WORDS
from policies.views.sides import choices_of, normal_form, sides_of

READ_ONLY = ("Namespace", "PriorityClass")


class ObjectView(ClusterPage):
    """The three sides of an object beside each other; its form settles what differs."""

    template_name = "policies/syncedobject_detail.html"
    permission = "policies.change_syncedobject"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The sides, the choices and the object's state in words."""
        thing = self.find_object()
        ours = normal_form(our_manifest(thing))
        return super().get_context_data(
            **kwargs,
            thing=thing,
            state_words=STATE_WORDS[SyncedObject.State(thing.state)],
            sides=sides_of(thing.base, ours, thing.theirs),
            differences=choices_of(thing, ours),
            read_only=thing.kind in READ_ONLY,
            may_own=self.request.user.has_perm("policies.add_syncownership"),
        )

    def find_object(self) -> SyncedObject:
        """The object that the address names; one nobody has compared is 404."""
        names = self.kwargs
        namespace = "" if names["namespace"] == NO_NAMESPACE else names["namespace"]
        return get_object_or_404(
            SyncedObject,
            cluster=self.cluster,
            kind=names["kind"],
            namespace=namespace,
            name=names["name"],
        )


def our_manifest(thing: SyncedObject) -> dict[str, Any] | None:
    """What the portal has stored under the object's names, as Kubernetes would write it."""
    if thing.kind not in {*services.KINDS, *READ_ONLY}:
        return None
    found = services.find_object(
        thing.cluster, kind=thing.kind, name=thing.name, namespace=thing.namespace
    )
    manifest: dict[str, Any] | None = found.to_manifest() if found else None
    return manifest
