"""Pages that span the apps: what is on record, beside what the rules are."""

from __future__ import annotations

from typing import Any, Final

from policies.views.authority import AuthorityView
from portal.switching import DAYS, DECISIONS, preview

CHOICES: Final = (1, DAYS, 30)
"""Days that can be looked back."""
AT_ONCE: Final = 500
"""Decisions that are judged while somebody waits for the page; more on demand."""


class SwitchingView(AuthorityView):
    """Who enforces in a cluster, with the decisions on record that would have been others."""

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Judge the newest decisions again as if it had been the other one."""
        context = super().get_context_data(**kwargs)
        asked = self.request.GET.get("days", "")
        days = next((each for each in CHOICES if str(each) == asked), DAYS)
        most = DECISIONS if "more" in self.request.GET else AT_ONCE
        change = preview(self.cluster, context["other"], days=days, most=most)
        words = {"days": days, "choices": CHOICES, "is_cut": change.looked_at == most}
        more = DECISIONS if most == change.looked_at < DECISIONS else 0
        return {**context, **words, "change": change, "more": more}
