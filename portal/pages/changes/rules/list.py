"""RulesPage, for those who write rules of approval; ApprovalRuleListView, all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.contrib import messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.shortcuts import get_object_or_404, redirect

from policies.models import ApprovalRule
from policies.services import StaleRevisionError, changes
from portal.pages.changes.rules import words
from portal.pages.changes.rules.form import STALE
from portal.pages.views import PortalPage, whole_number

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

_UP, _DOWN, _ENABLE, _DISABLE, _DELETE = "up", "down", "enable", "disable", "delete"
_OF_ONE: Final = (_UP, _DOWN, _ENABLE, _DISABLE, _DELETE)


def find_rule(sent_text: str) -> ApprovalRule:
    """The rule of a number in an address or a form, or 404."""
    rule: ApprovalRule = get_object_or_404(ApprovalRule, pk=whole_number(sent_text))
    return rule


class RulesPage(PortalPage):
    """A page for those who write rules of approval, which are of the fleet."""

    permission = changes.RULING

    def find(self, names: dict[str, Any]) -> None:
        """Refuse everybody else before anything is looked up."""
        super().find(names)
        if not self.may(changes.RULING):
            raise PermissionDenied


class ApprovalRuleListView(RulesPage):
    """All rules in their order, which is never more than a hundred."""

    template_name = "changes/rules/rules.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The rules with their words."""
        rules = [
            {"rule": rule, "when": words.when(rule.terms), "asks": words.asks(rule.terms)}
            for rule in ApprovalRule.objects.all()
        ]
        return super().get_context_data(**kwargs, rules=rules)

    def post(self, request: HttpRequest) -> HttpResponse:
        """Make the preset, or move, switch or delete one rule."""
        if "preset" in request.POST:
            self._add_preset()
        for act in _OF_ONE:
            if act in request.POST:
                self._do(act, find_rule(request.POST[act]))
                break
        return redirect("change-rules")

    def _add_preset(self) -> None:
        try:
            is_of_tests = self.request.POST["preset"] == "tests"
            terms = changes.RED_TESTS_BLOCK if is_of_tests else changes.FOUR_EYES
            rule = changes.add_preset(user=self.username, terms=terms)
        except ValidationError as error:
            messages.error(self.request, f"No rule was made: {error.messages[0]}")
        else:
            messages.success(self.request, f"Made: {rule}. It applies to changes in review, too.")

    def _do(self, act: str, rule: ApprovalRule) -> None:
        match act:
            case "delete":
                changes.delete_rule(rule, user=self.username)
                messages.success(self.request, f"Deleted: {rule}.")
            case "up" | "down":
                changes.move_rule(rule, user=self.username, places=-1 if act == _UP else 1)
            case _:
                self._switch(rule, is_on=act == _ENABLE)

    def _switch(self, rule: ApprovalRule, *, is_on: bool) -> None:
        try:
            changes.save_rule(
                rule,
                user=self.username,
                terms={"enabled": is_on},
                expected_revision=rule.revision,
            )
        except StaleRevisionError:
            messages.error(self.request, STALE)
        else:
            messages.success(self.request, f"{'In force' if is_on else 'Disabled'}: {rule}.")
