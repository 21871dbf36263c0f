"""DELETE over REST: a cluster's needs consent (``?confirm=``, 428); preview of dependents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import APIException

from policies import services
from policies.models import Cluster, Namespace
from policies.preconditions import HEADER

if TYPE_CHECKING:
    from rest_framework.request import Request

REASON: Final = OpenApiParameter("reason", str, description="why, for the record")
CONFIRM: Final = OpenApiParameter(
    "confirm", str, description="the cluster's name, as a confirmation; or send If-Match"
)


class ConsentError(APIException):
    """Deleting a cluster deletes everything it has, and the request does not confirm that."""

    status_code = 428

    def __init__(self, cluster: Cluster) -> None:
        super().__init__()
        dependents = services.count_dependents(cluster)
        counts = ", ".join(f"{number} {name}" for name, number in dependents.items() if number)
        consent_text = (
            f"this deletes the cluster with {counts or 'nothing in it'}: repeat it with "
            f'?confirm={cluster.name} or If-Match: "{cluster.revision}"'
        )
        self.detail: Any = {"detail": consent_text, "deletes": dependents}


def require_consent(request: Request, instance: Any) -> None:
    """Raise ``ConsentError`` unless a cluster's deletion has ``If-Match`` or the cluster's name."""
    if not isinstance(instance, Cluster) or HEADER in request.headers:
        return
    if request.query_params.get("confirm") != instance.name:
        raise ConsentError(instance)


def preview(instance: Any, shown_object: dict[str, Any]) -> dict[str, Any]:
    """The object that would be deleted, with counts of what would be deleted with it."""
    if isinstance(instance, Cluster | Namespace):
        return {**shown_object, "deletes": services.count_dependents(instance)}
    return shown_object
