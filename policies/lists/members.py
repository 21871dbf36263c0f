"""``?fields=`` of REST reads: paths of members, checked by the serializer, picked from answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers, status

from policies.rest import BadParameterError, known_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rest_framework.request import Request
    from rest_framework.response import Response

FIELDS: Final = OpenApiParameter(
    "fields",
    str,
    description="Only these members of each object, such as name,metadata.labels,spec",
)
MOST_PATHS: Final = 100
_OPEN: Final = r"(\.[^,\u0000]+)?"
_READS: Final = ("list", "retrieve")
_OPEN_FIELDS: Final = (
    serializers.JSONField,
    serializers.DictField,
    serializers.ListField,
)
"""Fields whose members are not declared."""


class PicksMembers:
    """Part of an API view, before ``KnownParameters``: reads answer the named members only."""

    request: Any
    action: str
    paths: Sequence[str] = ()

    def parameters_of(self, action: str) -> Sequence[OpenApiParameter]:
        """Reads accept ``fields``."""
        own_parameters: Sequence[OpenApiParameter] = super().parameters_of(action)  # type: ignore[misc]  # of KnownParameters
        return (*own_parameters, FIELDS) if action in _READS else own_parameters

    def described(self, parameter: OpenApiParameter) -> OpenApiParameter:
        """``fields`` with the members that there are, for OpenAPI."""
        if parameter is not FIELDS:
            return parameter
        pattern = f"^({_pattern_of(self.get_serializer())})$"  # type: ignore[attr-defined]  # the view's own
        item = {"type": "string", "pattern": pattern}
        schema = {"type": "array", "items": item, "maxItems": MOST_PATHS}
        return OpenApiParameter(
            FIELDS.name, schema, description=FIELDS.description, style="form", explode=False
        )

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Check the paths before anything is read; raises ``BadParameterError``."""
        super().initial(request, *args, **kwargs)  # type: ignore[misc]  # the view's own
        given_paths = request.query_params.get(FIELDS.name)
        if given_paths is None:
            return
        paths = [path.strip() for path in given_paths.split(",")]
        if len(paths) > MOST_PATHS:
            message = f"Too many: {len(paths)}: must have at most {MOST_PATHS} items"
            raise BadParameterError(FIELDS.name, message, code="FieldValueTooMany")
        serializer = self.get_serializer()  # type: ignore[attr-defined]  # the view's own
        for path in paths:
            _require_known(path, serializer)
        self.paths = paths

    def finalize_response(
        self, request: Request, response: Response, *args: Any, **kwargs: Any
    ) -> Response:
        """Leave out what is not named; errors stay whole."""
        if self.paths and response.status_code == status.HTTP_200_OK:
            if self.action == "list":
                response.data["results"] = picked(response.data["results"], self.paths)
            else:
                response.data = picked(response.data, self.paths)
        final_response: Response = super().finalize_response(request, response, *args, **kwargs)  # type: ignore[misc]  # the view's own
        return final_response


def _require_known(path: str, field: Any, parent: str = "") -> None:
    """Check a path against declared fields; raises ``BadParameterError``."""
    if isinstance(field, serializers.ListSerializer):
        field = field.child
    if isinstance(field, _OPEN_FIELDS):
        return
    declared_fields = field.fields if isinstance(field, serializers.Serializer) else {}
    readable_fields = {
        f"{parent}{name}": child for name, child in declared_fields.items() if not child.write_only
    }
    undeclared = getattr(field, "undeclared_members", ())
    if path in undeclared:
        return
    name, _, rest = path.partition(".")
    if parent + name not in readable_fields:
        whole_path = parent + path
        known = known_names(whole_path, [*readable_fields, *undeclared])
        message = f'unknown field "{whole_path}"; {known}'
        raise BadParameterError(FIELDS.name, message, code="unknown_field")
    if rest:
        _require_known(rest, readable_fields[parent + name], f"{parent}{name}.")


def _pattern_of(field: Any) -> str:
    """A regular expression of the paths into a serializer that ``_require_known`` accepts."""
    paths = [*getattr(field, "undeclared_members", ())]
    for name, declared in field.fields.items():
        child = declared.child if isinstance(declared, serializers.ListSerializer) else declared
        is_nested = isinstance(child, serializers.Serializer)
        beyond = f"(\\.({_pattern_of(child)}))?" if is_nested else ""
        beyond = _OPEN if isinstance(child, _OPEN_FIELDS) else beyond
        paths += [] if declared.write_only else [f"{name}{beyond}"]
    return "|".join(paths)


def picked(shown: Any, paths: Sequence[str]) -> Any:
    """The members at these paths; each object of a list is picked from in turn.

    Names may have dots themselves, as in ``spec.hard.requests.cpu``.
    """
    if isinstance(shown, list):
        return [picked(each, paths) for each in shown if isinstance(each, Mapping | list)]
    members = {}
    for name, value in shown.items():
        beyond = [path.removeprefix(f"{name}.") for path in paths if path.startswith(f"{name}.")]
        if name in paths:
            members[name] = value
        elif beyond and isinstance(value, Mapping | list):
            members[name] = picked(value, beyond)
    return members
