"""Versions of Kubernetes: how they are read, and what stands for one that is not known."""

from __future__ import annotations

import pytest

from engine.kubernetes_version import (
    DEFAULT_VERSION,
    KNOWN_VERSIONS,
    KubernetesVersion,
    parse_version,
    stored_version,
    version_of_release,
)


def test_known_versions_are_read() -> None:
    assert [str(parse_version(str(each))) for each in KNOWN_VERSIONS] == ["1.35", "1.36", "1.37"]
    assert parse_version("") == DEFAULT_VERSION == KubernetesVersion(36)


@pytest.mark.parametrize(
    "text", ["1.38", "1.3", "v1.36", "1.36.3", " 1.36", "36", "2.36", "latest"]
)
def test_other_texts_are_refused_with_the_known_ones(text: str) -> None:
    with pytest.raises(ValueError, match=r"must be one of: 1\.35, 1\.36, 1\.37"):
        parse_version(text)


@pytest.mark.parametrize(
    ("release", "minor"),
    [
        ("v1.36.3", 36),
        ("1.37", 37),
        ("v1.35.4-eks-113cf36", 35),
        ("v1.40.0-alpha.1+abc", 40),
        ("v1.36+", 36),
    ],
)
def test_releases_are_of_a_version(release: str, minor: int) -> None:
    assert version_of_release(release) == KubernetesVersion(minor)


@pytest.mark.parametrize("release", ["", "v2.1.0", "unknown", "v1", "v1.1234.5", "x1.36.3"])
def test_other_releases_are_of_none(release: str) -> None:
    assert version_of_release(release) is None


@pytest.mark.parametrize(
    ("minor", "nearest"), [(20, 35), (34, 35), (35, 35), (36, 36), (37, 37), (38, 37), (99, 37)]
)
def test_an_unknown_version_stands_for_the_nearest_known(minor: int, nearest: int) -> None:
    version = KubernetesVersion(minor)
    assert version.nearest_known == KubernetesVersion(nearest)
    assert version.is_known is (minor == nearest)
    assert stored_version(str(version)) == KubernetesVersion(nearest)


def test_an_unreadable_stored_version_is_the_default() -> None:
    assert stored_version("") == stored_version("?") == DEFAULT_VERSION
