"""NamespaceClass: decode, validate and encode it, match namespaces, fill in its parameters."""

from engine.namespace_class.definition import (
    KIND,
    ClassParameter,
    NamespaceClass,
    NamespaceSelector,
    OnLeave,
    ParameterType,
    decode_namespace_class,
    encode_namespace_class,
)
from engine.namespace_class.parameters import (
    PARAMETER_PREFIX,
    ParameterValues,
    filled_in,
    parameter_values,
    references,
)
from engine.namespace_class.validation import POLICY_KINDS, validate_namespace_class

__all__ = [
    "KIND",
    "PARAMETER_PREFIX",
    "POLICY_KINDS",
    "ClassParameter",
    "NamespaceClass",
    "NamespaceSelector",
    "OnLeave",
    "ParameterType",
    "ParameterValues",
    "decode_namespace_class",
    "encode_namespace_class",
    "filled_in",
    "parameter_values",
    "references",
    "validate_namespace_class",
]
