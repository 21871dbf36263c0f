"""QuantityField and QuantityValue: a model column that keeps a quantity's text as typed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.db import models

from engine.quantity import Quantity, QuantityError

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper
    from django.db.models.expressions import Expression

LONGEST_QUANTITY = 512
"""Far beyond any amount; longer texts would only fill the database."""


@dataclass(frozen=True, slots=True)
class QuantityValue:
    """A quantity as typed; an empty text is a JSON null, which counts as zero."""

    text: str

    @property
    def quantity(self) -> Quantity:
        """The exact value; raises ``QuantityError`` for other texts."""
        return Quantity.parse_json(self.text or None)

    @property
    def json(self) -> str | None:
        """The value in a manifest."""
        return self.text or None

    def __str__(self) -> str:
        return self.text


def parse_quantity(value: object) -> QuantityValue:
    """Read the value of a form, manifest or program; raises ``ValidationError``."""
    quantity_value = value if isinstance(value, QuantityValue) else QuantityValue(str(value))
    try:
        is_infinite = quantity_value.quantity.is_infinite
    except QuantityError as error:
        raise ValidationError(error.detail, code="invalid_quantity") from error
    if is_infinite:
        raise ValidationError("is beyond any real amount", code="invalid_quantity")
    return quantity_value


if TYPE_CHECKING:
    _Field = models.CharField[QuantityValue | str | None, QuantityValue | None]
else:
    _Field = models.CharField


class QuantityField(_Field):
    """A Kubernetes quantity; NULL in the database means that it is absent."""

    description = "A Kubernetes quantity"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("max_length", LONGEST_QUANTITY)
        kwargs.setdefault("null", True)
        kwargs.setdefault("blank", True)
        super().__init__(*args, **kwargs)

    def from_db_value(
        self, value: str | None, _expression: Expression, _connection: BaseDatabaseWrapper
    ) -> QuantityValue | None:
        """Wrap the stored text, which was checked when it was written."""
        return None if value is None else QuantityValue(value)

    def to_python(self, value: object) -> Any:
        """Wrap a value; raises ``ValidationError`` for other texts."""
        return None if value is None else parse_quantity(value)

    def run_validators(self, value: Any) -> None:
        """Run the validators on the text."""
        super().run_validators(None if value is None else str(value))

    def formfield(self, *args: Any, **kwargs: Any) -> Any:
        """Require a digit in forms, though Kubernetes reads ``.`` and ``Ki`` as zero."""
        field: Any = super().formfield(*args, **kwargs)
        field.validators.append(RegexValidator(r"[0-9]", "must contain a digit"))
        return field

    def get_prep_value(self, value: Any) -> str | None:
        """Store the text."""
        return None if value is None else str(value)

    def value_to_string(self, obj: models.Model) -> str:
        """The text, for serialised dumps."""
        quantity_value = self.value_from_object(obj)
        return "" if quantity_value is None else str(quantity_value)
