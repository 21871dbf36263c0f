"""PolicyFiles: the policies of files, to judge by without a database; their PolicySets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.kept_tests import KIND
from engine.kubernetes_version import DEFAULT_VERSION, KubernetesVersion
from engine.policy_manifests import build_policy_set, is_policy, only_namespace
from policies.manifests.bundle import read_bundle
from policies.manifests.sources import read_sources

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from engine.policy import PolicySet
    from policies.manifests.bundle import Wanted


@dataclass(frozen=True, slots=True)
class PolicyFiles:
    """Checked manifests of policies, and the entries of ``limitedResources`` among the files.

    A policy without a namespace holds in every namespace. ``tests`` are the kept ones.
    """

    manifests: tuple[Mapping[str, Any], ...] = ()
    limited_resources: tuple[Mapping[str, Any], ...] | None = None
    tests: tuple[Wanted, ...] = ()

    @property
    def namespace(self) -> str:
        """The namespace that all policies share; ``default`` if they do not."""
        return only_namespace(self.manifests)

    @property
    def are_empty(self) -> bool:
        """Whether nothing here could refuse an object."""
        return not self.limited_resources and not any(map(is_policy, self.manifests))

    def policy_set(
        self,
        namespace: str,
        limited_resources: object = None,
        version: KubernetesVersion = DEFAULT_VERSION,
    ) -> PolicySet:
        """Compile the policies of one namespace; raises ``DecodeError``.

        ``limited_resources`` takes the place of the files' own.
        """
        own = None if self.limited_resources is None else list(self.limited_resources)
        limited = own if limited_resources is None else limited_resources
        in_namespace = [each for each in self.manifests if _namespace_of(each) in ("", namespace)]
        return build_policy_set(in_namespace, limited, namespace=namespace, version=version)


def read_policy_files(names: Iterable[str]) -> PolicyFiles:
    """Read policies from files, folders and ``-``; raises ManifestError with every problem."""
    bundle = read_bundle(read_sources(names), namespace="")
    manifests = tuple(wanted.manifest for wanted in bundle.objects)
    tests = tuple(wanted for wanted in bundle.objects if wanted.item.kind == KIND)
    return PolicyFiles(manifests, bundle.limited_resources, tests)


def _namespace_of(manifest: Mapping[str, Any]) -> str:
    return str(manifest["metadata"].get("namespace") or "")
