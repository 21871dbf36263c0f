"""NewPolicyView: the editor of a policy that is not there yet, blank or begun with a copy."""

from __future__ import annotations

from typing import Any

from policies import roles, services
from policies.drafts.draft import draft_of_manifest
from portal.pages.policies.editor import EditorView
from portal.pages.policies.state import EditorState


class NewPolicyView(EditorView):
    """The editor of a policy that is not there yet; ``from`` names one of the cluster to copy."""

    is_new = True

    def stored_state(self) -> EditorState:
        """A blank policy, or a copy of the one that is named, if the person may see it."""
        namespace, _, name = self.request.GET.get("from", "").replace("\0", "").partition("/")
        source = None
        if self.place.namespace and name and roles.sees(self.user, self.cluster.name, namespace):
            source = services.find_object(
                self.cluster, kind=self.place.kind.name, name=name, namespace=namespace
            )
        if source is None:
            return super().stored_state()
        manifest = source.to_manifest()
        manifest["metadata"] = {**manifest["metadata"], "namespace": self.namespace_name}
        draft = draft_of_manifest(self.place, manifest)
        return EditorState(draft=draft, shown=draft.text)

    def _begun(self, editor_state: EditorState, ready: str) -> EditorState:
        is_blank = editor_state.draft.manifest == self.current
        return super()._begun(editor_state, ready) if is_blank else editor_state

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Send its form to its own address: the policy has none yet."""
        return super().get_context_data(**kwargs, address=self.here)
