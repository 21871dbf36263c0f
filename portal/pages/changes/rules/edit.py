"""ApprovalRulePageView, the form of one rule; NewApprovalRuleView, the form of a new one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.shortcuts import redirect

from policies.models import ApprovalRule
from portal.pages.changes.rules.form import ApprovalRuleForm, form_of
from portal.pages.changes.rules.history import rule_history
from portal.pages.changes.rules.list import RulesPage, find_rule

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse


class NewApprovalRuleView(RulesPage):
    """The form of a new rule, which becomes the last."""

    template_name = "changes/rules/rule.html"
    rule: ApprovalRule

    def find(self, names: dict[str, Any]) -> None:
        """Begin with the defaults of a rule."""
        super().find(names)
        self.rule = ApprovalRule()

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The rule and its form."""
        form_context = {"form": form_of(self.rule), **kwargs}
        return super().get_context_data(**form_context, rule=self.rule)

    def post(self, request: HttpRequest, **_names: Any) -> HttpResponse:
        """Save the rule, and go to the list."""
        form = ApprovalRuleForm(request.POST)
        saved = form.store(self.rule, user=self.username) if form.is_valid() else None
        if saved is None:
            return self.render_to_response(self.get_context_data(form=form), status=422)
        messages.success(request, f"Saved: {saved}. It applies to changes in review, too.")
        return redirect("change-rules")


class ApprovalRulePageView(NewApprovalRuleView):
    """The form of a stored rule."""

    def find(self, names: dict[str, Any]) -> None:
        """Find the rule; 404 for one that is deleted."""
        super().find(names)
        self.rule = find_rule(str(names["number"]))

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The rule, its form, and who wrote it when."""
        return super().get_context_data(**kwargs, history=rule_history(self.rule))
