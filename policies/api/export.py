"""Export of a cluster over REST: YAML of the kinds and namespaces that the caller may see."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.http import HttpResponse
from drf_spectacular.utils import OpenApiParameter

from policies import roles
from policies.manifests.export import CHOICES, KINDS, export_cluster
from policies.manifests.objects import FLEET_KINDS
from policies.models import Namespace
from policies.rest import BadParameterError

if TYPE_CHECKING:
    from rest_framework.request import Request

    from policies.models import Cluster

_NAMESPACE: Final = OpenApiParameter(
    "namespace", str, many=True, description="only these and their policies; repeatable"
)
_KIND: Final = OpenApiParameter(
    "kind", str, many=True, enum=list(CHOICES), description="only these kinds; repeatable"
)
PARAMETERS: Final = (_NAMESPACE, _KIND)


def answer(request: Request, cluster: Cluster) -> HttpResponse:
    """Export what the parameters name; raises BadParameterError for unknown names."""
    kinds = _known(request, _KIND.name, CHOICES) or KINDS
    if not roles.sees_all(request.user):
        kinds = [kind for kind in kinds if kind not in FLEET_KINDS]
    seen = roles.visible(
        Namespace.objects.filter(cluster=cluster),
        request.user,
        cluster="cluster__name",
        namespace="name",
    )
    seen_names = list(seen.values_list("name", flat=True))
    namespaces = _known(request, _NAMESPACE.name, seen_names)
    if not namespaces and not roles.sees(request.user, cluster.name, ""):
        namespaces = seen_names
        # Without any namespace the export would be that of the whole cluster.
        kinds = kinds if seen_names else ()
    text = export_cluster(cluster, kinds=kinds, namespaces=namespaces)
    return HttpResponse(text, content_type="application/yaml")


def _known(request: Request, parameter: str, known: list[str] | tuple[str, ...]) -> list[str]:
    given = request.query_params.getlist(parameter)
    for name in given:
        if name not in known:
            message = f'Unsupported value: "{name}": supported values: {", ".join(known) or "none"}'
            raise BadParameterError(parameter, message, code="FieldValueNotSupported")
    return given
