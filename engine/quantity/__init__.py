"""Quantities: exact amounts, and the texts that Kubernetes reads and prints for them."""

from engine.quantity.amount import (
    BINARY_SI,
    DECIMAL_EXPONENT,
    DECIMAL_SI,
    FORMAT,
    NULL,
    NUMERIC,
    SUFFIX,
    ZERO,
    Quantity,
    QuantityError,
)

__all__ = [
    "BINARY_SI",
    "DECIMAL_EXPONENT",
    "DECIMAL_SI",
    "FORMAT",
    "NULL",
    "NUMERIC",
    "SUFFIX",
    "ZERO",
    "Quantity",
    "QuantityError",
]
