"""Abstract CompilablePolicy: whether the API server enforces the policy, too; its annotation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django.db import models
from django.db.models import Q

from engine.policy import IN_API_SERVER_ANNOTATION, InAPIServer, encode_in_api_server
from policies.models.policy_object import PolicyObject

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.errors import FieldError


class CompilablePolicy(PolicyObject):
    """A policy that can be compiled to an admission policy of the API server."""

    in_api_server = models.CharField(
        max_length=8,
        choices=[(mode.value, mode.value) for mode in InAPIServer],
        default=InAPIServer.OFF.value,
        help_text="whether the API server also enforces it, even while the portal is down",
    )

    class Meta(PolicyObject.Meta):
        abstract = True
        constraints: ClassVar = [
            *PolicyObject.Meta.constraints,
            models.CheckConstraint(
                condition=Q(in_api_server__in=[mode.value for mode in InAPIServer]),
                name="%(class)s_in_api_server_known",
            ),
        ]

    def metadata(self) -> dict[str, Any]:
        """``metadata`` of the manifest, with the annotation for the API server."""
        policy_metadata = super().metadata()
        mode = self.in_api_server
        known = encode_in_api_server(InAPIServer(mode)) if mode in tuple(InAPIServer) else {}
        if known:
            annotations = {**policy_metadata.get("annotations", {}), **known}
            policy_metadata["annotations"] = annotations
        return policy_metadata

    def read_metadata(
        self, manifest: Mapping[str, Any], problems: Sequence[FieldError] = ()
    ) -> None:
        """Set the metadata, and what the API server does; raises ``ValidationError``."""
        super().read_metadata(manifest, problems)
        self.in_api_server = self.annotations.pop(IN_API_SERVER_ANNOTATION, InAPIServer.OFF.value)
