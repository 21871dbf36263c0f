"""DELETE over REST: consent by If-Match or ``?confirm=``, errors 412 and 428, what goes with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework.exceptions import APIException

from policies import services
from policies.models import Cluster, Namespace

if TYPE_CHECKING:
    from rest_framework.request import Request

_REASON: Final = OpenApiParameter("reason", str, description="why, for the record")
_CONFIRM: Final = OpenApiParameter(
    "confirm", str, description="the cluster's name, to say that it is meant; or send If-Match"
)
_IF_MATCH: Final = OpenApiParameter(
    "If-Match",
    str,
    OpenApiParameter.HEADER,
    description='the revision that was looked at, as in "3"; another one is refused',
)
RESPONSES: Final = {
    200: OpenApiResponse(
        OpenApiTypes.OBJECT, description="dryRun=All: the object, and in deletes what goes with it"
    ),
}


class ChangedError(APIException):
    """The object is not at the revision that ``If-Match`` names."""

    status_code = 412

    def __init__(self, revision: int) -> None:
        super().__init__()
        text = f'the object is at revision {revision}: look at it, and send If-Match: "{revision}"'
        self.detail: Any = {"detail": text, "revision": revision}


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


def parameters(*, is_cluster: bool) -> tuple[OpenApiParameter, ...]:
    """The parameters of a deletion."""
    return (_REASON, _IF_MATCH, *((_CONFIRM,) if is_cluster else ()))


def require_consent(request: Request, instance: Any) -> None:
    """Check ``If-Match`` if it is sent; a cluster needs it, or its name as confirmation."""
    if_match = request.headers.get("If-Match")
    if if_match is not None and if_match.strip().strip('"') != str(instance.revision):
        raise ChangedError(instance.revision)
    if not isinstance(instance, Cluster) or if_match is not None:
        return
    if request.query_params.get("confirm") != instance.name:
        raise ConsentError(instance)


def preview(instance: Any, shown_object: dict[str, Any]) -> dict[str, Any]:
    """The object that would be deleted, with counts of what would be deleted with it."""
    if isinstance(instance, Cluster | Namespace):
        return {**shown_object, "deletes": services.count_dependents(instance)}
    return shown_object
