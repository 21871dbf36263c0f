"""The canary pod, created as a dry run, and its CanaryCall: refused, let through or not called.

It takes the path of every pod, through the cluster's API server to our webhooks and back. A random
word in the refusal proves that our webhook refused this very canary.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from engine.chain import CANARY_ANNOTATION, canary_message
from policies.validators import CANARY_NAMESPACE
from sync.errors import APIError, BusyError, ForbiddenError

if TYPE_CHECKING:
    from sync.client import Client

NAME: Final = "gatehouse-canary"
_QUOTA_PLUGIN_MESSAGES: Final = ("exceeded quota: ", "insufficient quota to ", "failed quota: ")
"""Messages of the quota plugin, which the API server calls after all webhooks."""
_NOT_CALLED: Final = ("failed calling webhook", "failed to call webhook")


class CanaryResult(StrEnum):
    """The fate of a canary."""

    REFUSED = "refused"
    LET_THROUGH = "let-through"
    NOT_CALLED = "not-called"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryCall:
    """The outcome of one canary; ``mutated``: whether the mutating webhook saw it, if known."""

    outcome: CanaryResult
    message: str = ""
    milliseconds: float = 0.0
    mutated: bool | None = None


def call_canary(client: Client) -> CanaryCall:
    """Send a canary; an error of the cluster is no exception but ``UNKNOWN``, with its message."""
    canary_word = secrets.token_hex(8)
    call_begun = time.monotonic()
    try:
        client.create(canary_pod(canary_word), dry_run=True)
    except APIError as error:
        answer = _judge_answer(error, canary_word)
    else:
        answer = (CanaryResult.LET_THROUGH, "the canary was let through", None)
    outcome, message, mutated = answer
    call_time = (time.monotonic() - call_begun) * 1000
    return CanaryCall(outcome=outcome, message=message, milliseconds=call_time, mutated=mutated)


def is_of_quota_plugin(message: str) -> bool:
    """Whether a refusal is the API server's own quota plugin's, which is on then."""
    return any(words in message for words in _QUOTA_PLUGIN_MESSAGES)


def _judge_answer(error: APIError, canary_word: str) -> tuple[CanaryResult, str, bool | None]:
    refusal_message = error.message
    if isinstance(error, ForbiddenError):
        for mutated in (True, False):
            if canary_message(canary_word, mutated=mutated) in refusal_message:
                return CanaryResult.REFUSED, refusal_message, mutated
        if is_of_quota_plugin(refusal_message):
            return CanaryResult.LET_THROUGH, refusal_message, None
    if isinstance(error, BusyError) and any(words in refusal_message for words in _NOT_CALLED):
        return CanaryResult.NOT_CALLED, refusal_message, None
    return CanaryResult.UNKNOWN, refusal_message, None


def canary_pod(canary_word: str) -> dict[str, Any]:
    """A pod that only our webhook refuses: it satisfies the strictest pod security standard."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": NAME,
            "namespace": CANARY_NAMESPACE,
            "annotations": {CANARY_ANNOTATION: canary_word},
        },
        "spec": {
            "automountServiceAccountToken": False,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 65534,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [
                {
                    "name": "canary",
                    "image": "gatehouse.invalid/canary",
                    "resources": {
                        "requests": {"cpu": "1m", "memory": "1Mi"},
                        "limits": {"cpu": "1m", "memory": "1Mi"},
                    },
                    "securityContext": {
                        "allowPrivilegeEscalation": False,
                        "capabilities": {"drop": ["ALL"]},
                    },
                }
            ],
        },
    }
