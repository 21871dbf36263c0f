"""Pages that span the apps: what is on record, beside what the rules are."""

from __future__ import annotations

from typing import Any

from policies.views.authority import AuthorityView
from portal.switching import DAYS, preview


class SwitchingView(AuthorityView):
    """Who enforces in a cluster, with the decisions on record that would have been others."""

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Judge the newest decisions again as if it had been the other one."""
        context = super().get_context_data(**kwargs)
        return {**context, "days": DAYS, "change": preview(self.cluster, context["other"])}
