"""Match one scope selector entry of a quota: an operator against one value.

Source: ``pkg/apis/core/v1/helper/helpers.go`` (ScopedResourceSelectorRequirementsAsSelector).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.cache import Remembering, once
from engine.errors import render_value
from engine.selector.label_selector import OPERATORS
from engine.selector.requirement import Requirement, SelectorError, build_requirement


@dataclass(frozen=True, slots=True)
class ScopeSelectorRequirement(Remembering):
    """One entry of ``scopeSelector.matchExpressions`` or of ``matchScopes``, as written.

    ``is_listed`` distinguishes an empty list of values from none at all, which error texts do.
    """

    scope_name: str
    operator: str
    values: tuple[str, ...] = ()
    is_listed: bool = field(default=False, compare=False)

    def __str__(self) -> str:
        """As Go prints its fields, without the braces: ``PriorityClass In [a b]``."""
        return f"{self.scope_name} {self.operator} [{' '.join(self.values)}]"


@once
def _compile(requirement: ScopeSelectorRequirement) -> Requirement:
    operator = OPERATORS.get(requirement.operator)
    if operator is None:
        shown = render_value(requirement.operator)
        raise SelectorError(f"{shown} is not a valid scope selector operator")
    return build_requirement(requirement.scope_name, operator, requirement.values)


def matches_value(requirement: ScopeSelectorRequirement, value: str) -> bool:
    """Whether one string satisfies the operator; the empty string counts as absent.

    ``Exists`` ignores its values. Otherwise raises ``SelectorError`` with the library's text
    when the entry cannot be built: an unknown operator, a wrong number of values, a value
    that is not a label value. The caller words what comes before that text.
    """
    if requirement.operator == "Exists":
        return value != ""
    labels = {requirement.scope_name: value} if value else {}
    return _compile(requirement).matches(labels)
