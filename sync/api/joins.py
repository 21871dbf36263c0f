"""Joins of the API: a body as a JoinRequest, refusals as errors of its fields, findings as JSON.

Apart from the view: what it imports loads cryptography.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from django.core.exceptions import ValidationError
from rest_framework.exceptions import APIException

from engine.policy import Authority
from policies import preconditions
from sync.connect import join as joins
from sync.connect.join import NotUsableError
from sync.connect.kubeconfig import KubeconfigError
from sync.connect.seal_keys import KeyFileError
from sync.connect.sealed_box import SealingError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sync.connect.join import Joined
    from sync.connect.probe import ProbeResult


class NotSealedError(APIException):
    """The portal cannot seal a credential: 503, until an operator gives it a key."""

    status_code = 503


def join(
    cluster: str, sent: Mapping[str, Any], *, user: str, generation: int, is_dry_run: bool
) -> Joined:
    """Test and store the connection that a body describes; nothing is stored in a dry run."""
    request = joins.JoinRequest(
        **_request_fields(cluster, sent),
        authority=sent.get("authority", Authority.NATIVE),
        is_anyway=sent.get("is_anyway", False),
        generation=generation,
        is_dry_run=is_dry_run,
    )
    with _errors_by_field():
        return joins.join(request, user=user, reason=sent.get("reason", ""))


def try_out(cluster: str, sent: Mapping[str, Any]) -> dict[str, Any]:
    """Test the kubeconfig of a body; the findings as JSON."""
    with _errors_by_field():
        findings = joins.try_out(joins.JoinRequest(**_request_fields(cluster, sent)))
    return {
        "state": findings.state,
        "message": findings.message,
        "is_usable": findings.is_usable,
        "server_version": findings.server_version,
        "cluster_uid": findings.cluster_uid,
        "clock_skew": findings.clock_skew,
        "missing_permissions": list(findings.missing),
        "problems": problems_found(findings),
    }


def problems_found(findings: ProbeResult) -> list[dict[str, str]]:
    """The problems of a test, each with its code."""
    return [{"code": code, "message": text} for code, text in findings.problems]


def _request_fields(cluster: str, sent: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": cluster,
        "text": sent["kubeconfig"],
        "context": sent.get("context", ""),
        "is_other_cluster": sent.get("is_other_cluster", False),
    }


@contextmanager
def _errors_by_field() -> Iterator[None]:
    """Turn refusals into errors of the field ``kubeconfig``, which repeat nothing of its text."""
    try:
        yield
    except KubeconfigError as error:
        refusals = [ValidationError(str(each), code=each.code) for each in error.refusals]
        raise ValidationError({"kubeconfig": refusals}) from None
    except NotUsableError as error:
        text = f"The connection that is there works, and this one does not: {error}"
        unusable = ValidationError(text, code="not-usable")
        raise ValidationError({"kubeconfig": unusable}) from None
    except (SealingError, KeyFileError) as error:
        raise NotSealedError(f"The credential cannot be sealed: {error}") from error
    except ValidationError as error:
        if getattr(error, "code", None) == "changed":
            raise preconditions.ChangedError("*") from error
        raise
