"""ApprovalRuleForm, the terms of a rule as people type them; the service checks them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.core.exceptions import ValidationError

from policies.change_sets.approvals.terms import APPROVING_ROLES, MOST_APPROVERS
from policies.models.changes.approval_rule import KINDS, TERMS
from policies.services import StaleRevisionError, changes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from policies.models import ApprovalRule

LISTS: Final = ("clusters", "namespaces")
"""Terms that are lists of names, typed into one field each."""
STALE: Final = "Somebody has written this rule since you opened it. Open it again to see how it is."
_LONGEST: Final = 10_000
_PLAIN: Final = {"autocomplete": "off", "spellcheck": "false"}


def _tick(label: str) -> forms.BooleanField:
    return forms.BooleanField(label=label, required=False)


def _names(help_text: str) -> forms.CharField:
    return forms.CharField(
        required=False,
        max_length=_LONGEST,
        help_text=help_text,
        widget=forms.TextInput(attrs=_PLAIN),
    )


def _over(label: str) -> forms.IntegerField:
    return forms.IntegerField(label=label, required=False, min_value=0)


class ApprovalRuleForm(forms.Form):
    """All terms of a rule, and the revision that its form was opened with."""

    seen = forms.IntegerField(required=False, min_value=0, widget=forms.HiddenInput)
    name = forms.CharField(max_length=100, widget=forms.TextInput(attrs=_PLAIN))
    enabled = _tick("In force")
    kinds = forms.MultipleChoiceField(
        choices=[(kind, kind) for kind in KINDS],
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )
    clusters = _names("Names, separated by blanks. Empty: all clusters.")
    namespaces = _names("Names, separated by blanks; team-* is all that begin so. Empty: all.")
    deletes = _tick("An object is deleted")
    enforces = _tick("An object is set to enforce")
    below_used = _tick("A hard value is set below what is used")
    flips_over = _over("More verdicts would differ than")
    restarts_over = _over("More pods could not restart than")
    namespaces_over = _over("It changes more namespaces than")
    red_tests_over = _over("More kept tests would be red than")
    approvers = forms.IntegerField(
        min_value=0,
        max_value=MOST_APPROVERS,
        help_text=f"At most {MOST_APPROVERS}; 0 where green checks are enough.",
    )
    role = forms.ChoiceField(
        choices=[(role, role) for role in APPROVING_ROLES],
        help_text="Whoever is admin of a place may approve there as well.",
    )
    for_each_namespace = _tick("So many for each namespace, not for all of them together")
    checks_green = _tick("All checks must be green")

    def clean_clusters(self) -> list[str]:
        """The names, each once."""
        return typed_names(self.cleaned_data["clusters"])

    def clean_namespaces(self) -> list[str]:
        """The names and prefixes, each once."""
        return typed_names(self.cleaned_data["namespaces"])

    def store(self, rule: ApprovalRule, *, user: str) -> ApprovalRule | None:
        """Save the terms; a refusal becomes an error of its field, or of the form."""
        terms = {name: self.cleaned_data[name] for name in TERMS}
        seen = self.cleaned_data["seen"] or 0
        try:
            return changes.save_rule(rule, user=user, terms=terms, expected_revision=seen)
        except StaleRevisionError:
            self.add_error(None, STALE)
        except ValidationError as error:
            for name, texts in error.message_dict.items():
                self.add_error(name if name in self.fields else None, texts)
        return None


def form_of(rule: ApprovalRule) -> ApprovalRuleForm:
    """The form of a rule as it is stored; of one that is not, its defaults."""
    stored: Mapping[str, Any] = {name: getattr(rule, name) for name in TERMS}
    texts = {name: " ".join(stored[name]) for name in LISTS}
    return ApprovalRuleForm(initial={**stored, **texts, "seen": rule.revision})


def typed_names(text: str) -> list[str]:
    """Names that are separated by blanks or commas, each once."""
    return list(dict.fromkeys(text.replace(",", " ").split()))
