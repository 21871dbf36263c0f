"""KeptTest: an object with the answer that is expected of policies; decode, validate, judge."""

from engine.kept_tests.definition import (
    ALLOW,
    DENY,
    KIND,
    OPERATIONS,
    REASONS,
    ExpectedAnswer,
    KeptTest,
    decode_kept_test,
    encode_kept_test,
)
from engine.kept_tests.judgement import (
    AnswerDifference,
    JudgedTest,
    answer_of,
    judge_test,
    with_used,
)
from engine.kept_tests.storable import MOST_BYTES, MOST_LEVELS, keepable, plain, withheld
from engine.kept_tests.validation import validate_kept_test

__all__ = [
    "ALLOW",
    "DENY",
    "KIND",
    "MOST_BYTES",
    "MOST_LEVELS",
    "OPERATIONS",
    "REASONS",
    "AnswerDifference",
    "ExpectedAnswer",
    "JudgedTest",
    "KeptTest",
    "answer_of",
    "decode_kept_test",
    "encode_kept_test",
    "judge_test",
    "keepable",
    "plain",
    "validate_kept_test",
    "with_used",
    "withheld",
]
