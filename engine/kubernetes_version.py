"""``KubernetesVersion``: the version whose rules hold in a cluster, and the rules that differ.

Each property is one difference, named for the newer behaviour; ``docs/reference/versions.md`` lists
them with their sources. Everything else is the same in all versions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_MAJOR: Final = 1
_RELEASE: Final = re.compile(r"v?([0-9]{1,3})\.([0-9]{1,3})(?![0-9])")


@dataclass(frozen=True, slots=True, order=True)
class KubernetesVersion:
    """A minor version: 36 for 1.36. One that is not known behaves as the nearest known one."""

    minor: int

    def __str__(self) -> str:
        """Render ``1.36``."""
        return f"{_MAJOR}.{self.minor}"

    @property
    def is_known(self) -> bool:
        """Whether its rules were compared with an API server."""
        return self in KNOWN_VERSIONS

    @property
    def nearest_known(self) -> KubernetesVersion:
        """The known version as which it behaves."""
        return min(max(self, KNOWN_VERSIONS[0]), KNOWN_VERSIONS[-1])

    @property
    def counts_devices_as_extended(self) -> bool:
        """Whether a ResourceClaim uses the extended resources of its device classes, too."""
        return self.minor >= 36  # noqa: PLR2004 - the version itself

    @property
    def completes_pods_when_stored(self) -> bool:
        """Whether pods complete their own resources once, before they are validated and stored.

        Older versions do so whenever they decode a pod, thus before LimitRanges, and by fewer
        rules.
        """
        return self.minor >= 37  # noqa: PLR2004 - the version itself

    @property
    def ignores_empty_pod_resources(self) -> bool:
        """Whether resources of a pod that state nothing leave the QoS class to its containers."""
        return self.minor >= 37  # noqa: PLR2004 - the version itself

    @property
    def compares_sums_in_resizes(self) -> bool:
        """Whether sums over containers are compared in a resize, and init containers count, too.

        Older versions compare the amounts of each container, and add them up then.
        """
        return self.minor >= 37  # noqa: PLR2004 - the version itself


KNOWN_VERSIONS: Final = tuple(KubernetesVersion(minor) for minor in (35, 36, 37))
"""The versions whose behaviour was compared with an API server, oldest first."""
DEFAULT_VERSION: Final = KubernetesVersion(36)
"""The version of a cluster whose version nobody knows."""


def parse_version(text: str) -> KubernetesVersion:
    """Read a known version, such as ``1.36``; empty is the default. Raises ``ValueError``."""
    if not text:
        return DEFAULT_VERSION
    for version in KNOWN_VERSIONS:
        if text == str(version):
            return version
    raise ValueError(UNKNOWN_TEXT)


def stored_version(text: str) -> KubernetesVersion:
    """Read a stored version; one that is not known, from another release, is its nearest known."""
    found = version_of_release(text)
    return found.nearest_known if found else DEFAULT_VERSION


def version_of_release(release: str) -> KubernetesVersion | None:
    """Read the version of a server's release, such as ``v1.36.3-gke.100``; None for other texts."""
    found = _RELEASE.match(release)
    if found is None or int(found[1]) != _MAJOR:
        return None
    return KubernetesVersion(int(found[2]))


UNKNOWN_TEXT: Final = f"must be one of: {', '.join(map(str, KNOWN_VERSIONS))}"
"""What is wrong with a version that is not known."""
