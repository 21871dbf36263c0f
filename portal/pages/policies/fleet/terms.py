"""Terms: what the words of a search ask of a policy's name, place, labels and values, as Q."""

from __future__ import annotations

import json
import operator
import re
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

from django.db.models import F, Q, TextField, Value
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast
from django.db.models.lookups import Contains, Exact, IContains

from engine.quantity import Quantity, QuantityError
from policies.models import (
    LimitRange,
    LimitRangeRow,
    MetadataPolicy,
    MetadataPolicyRule,
    ResourceQuota,
    ResourceQuotaRow,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MOST_WORDS: Final = 10
_COMPARED: Final = re.compile(r"([^<>=]+)(<=|>=|<|>|=)([^<>=]+)")
_SIGNS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "<": operator.lt,
    ">": operator.gt,
    "=": operator.eq,
    "<=": lambda left, right: not right < left,
    ">=": lambda left, right: not left < right,
}
# A ratio is no amount of a resource.
_AMOUNTS: Final[Mapping[str, tuple[Any, str, tuple[str, ...]]]] = {
    LimitRange.kind: (LimitRangeRow, "limit_range", ("min", "max", "default", "default_request")),
    ResourceQuota.kind: (ResourceQuotaRow, "quota", ("hard",)),
}
_RULES: Final = ("label_selector", "annotation_selector", "updated_labels", "updated_annotations")
_NONE: Final = Q(pk__in=())


class Terms:
    """The words of a search; a policy has to fit each of them.

    ``cpu>4`` compares the amounts of a resource, exactly; ``team=payments`` is a label, an amount,
    or what a rule selects or sets; ``4Gi`` is an amount, however it is written; any other word is
    a part of a name, a namespace, a label, a resource, or a rule.
    """

    def __init__(self, words: str) -> None:
        self._words = words.split()[:MOST_WORDS]
        self._known: dict[str, Q] = {}

    def of_policies(self, kind: str) -> Q:
        """What they ask of policies of a kind; amounts are read once, however often it is asked."""
        if kind not in self._known:
            asked = (_of_policy(kind, word) for word in self._words)
            self._known[kind] = reduce(operator.and_, asked, Q())
        return self._known[kind]

    def of_priority_classes(self) -> Q:
        """What they ask of priority classes, which have a name and labels."""
        asked = (
            has_label(word) if "=" in word else Q(name__icontains=word) | _labelled(word)
            for word in self._words
        )
        return reduce(operator.and_, asked, Q())


def has_label(label: str) -> Q:
    """Objects with this label, ``key=value``."""
    key, _, value = label.partition("=")
    if key.lstrip("-").isdigit():  # which would be read as a place in a list
        return Q(Contains(_text("labels"), Value(_pair(key, value))))
    return Q(Exact(KeyTextTransform(key, F("labels")), Value(value)))


def _of_policy(kind: str, word: str) -> Q:
    compared = _COMPARED.fullmatch(word)
    if compared:
        key, sign, value = compared.groups()
        found = _set(kind, key, sign, value)
        return found | has_label(word) | _ruled(kind, _pair(key, value)) if sign == "=" else found
    found = Q(name__icontains=word) | Q(namespace__name__icontains=word) | _labelled(word)
    if re.search(r"\w", word):
        found |= _ruled(kind, json.dumps(word, ensure_ascii=False)[1:-1]) | _counted(kind, word)
    return found


def _labelled(word: str) -> Q:
    """By a part of a key or a value of the labels."""
    if not re.search(r"\w", word):
        return _NONE
    part = json.dumps(word, ensure_ascii=False)[1:-1]
    return Q(IContains(_text("labels"), Value(part)))


def _counted(kind: str, word: str) -> Q:
    """By a resource with this in its name, or by an amount."""
    if kind not in _AMOUNTS:
        return _NONE
    model, parent, _ = _AMOUNTS[kind]
    named = model.objects.filter(resource__icontains=word).order_by().values(parent)
    return Q(pk__in=named) | _amounts(kind, Q(), "=", word)


def _set(kind: str, resource: str, sign: str, value: str) -> Q:
    """By the amounts of a resource; ``cpu`` is that of requests and of limits, too."""
    if kind not in _AMOUNTS:
        return _NONE
    return _amounts(kind, Q(resource=resource) | Q(resource__endswith=f".{resource}"), sign, value)


def _amounts(kind: str, of_resource: Q, sign: str, value: str) -> Q:
    """Compare in Python: a database would compare their texts, or round them."""
    try:
        asked = Quantity.parse(value)
    except QuantityError:
        return _NONE
    model, parent, columns = _AMOUNTS[kind]
    rows = model.objects.filter(of_resource).order_by()
    written = {
        each for row in rows.values_list(*columns).distinct() for each in row if each is not None
    }
    fitting = [str(each) for each in written if _SIGNS[sign](each.quantity, asked)]
    if not fitting:
        return _NONE
    has_one = reduce(operator.or_, (Q(**{f"{column}__in": fitting}) for column in columns))
    return Q(pk__in=rows.filter(has_one).values(parent))


def _ruled(kind: str, part: str) -> Q:
    """By what a rule selects or sets, as JSON has it."""
    if kind != MetadataPolicy.kind:
        return _NONE
    has_it = (Q(IContains(_text(column), Value(part))) for column in _RULES)
    rules = MetadataPolicyRule.objects.filter(reduce(operator.or_, has_it)).order_by()
    return Q(pk__in=rules.values("policy"))


def _pair(key: str, value: str) -> str:
    return f"{json.dumps(key, ensure_ascii=False)}: {json.dumps(value, ensure_ascii=False)}"


def _text(column: str) -> Cast:
    return Cast(F(column), TextField())
