"""Compile one MetadataPolicy: its rejects and its updates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.compiled.manifests import CompiledPolicy, name_missing
from engine.compiled.metadata_rejects import compile_rejects
from engine.compiled.metadata_updates import compile_updates
from engine.metadata_policy.rules import SYSTEM_NAMESPACES
from engine.policy import InAPIServer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.policy import MetadataPolicy


def compile_metadata_policy(
    policy: MetadataPolicy,
    in_api_server: InAPIServer = InAPIServer.ENFORCE,
    *,
    beside: Sequence[MetadataPolicy] = (),
) -> CompiledPolicy:
    """Compile a policy; ``beside`` are the namespace's metadata policies, with it or without it."""
    if in_api_server is InAPIServer.OFF or policy.namespace in SYSTEM_NAMESPACES:
        return CompiledPolicy()
    if nameless := name_missing(policy):
        return CompiledPolicy(not_expressible=(nameless,))
    others = [each for each in beside if each.name != policy.name]
    rejects = compile_rejects(policy, in_api_server, others)
    updates = compile_updates(policy, in_api_server, others)
    return CompiledPolicy(
        manifests=(*rejects.manifests, *updates.manifests),
        not_expressible=(*rejects.not_expressible, *updates.not_expressible),
    )
