"""MetadataPolicy: decode and validate the object, apply its rules, annotate the QoS class."""

from engine.metadata_policy.definition import (
    API_VERSION,
    QOS_ANNOTATION,
    decode_metadata_policy,
    encode_metadata_policy,
    metadata_policy_warnings,
    validate_metadata_policy,
)
from engine.metadata_policy.rules import (
    MetadataResult,
    PodMetadata,
    apply,
    reason_not_applicable,
    recheck,
)
from engine.metadata_policy.updates import QOSResult, annotate_qos

__all__ = [
    "API_VERSION",
    "QOS_ANNOTATION",
    "MetadataResult",
    "PodMetadata",
    "QOSResult",
    "annotate_qos",
    "apply",
    "decode_metadata_policy",
    "encode_metadata_policy",
    "metadata_policy_warnings",
    "reason_not_applicable",
    "recheck",
    "validate_metadata_policy",
]
