"""A server's and a caller's side of TLS."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from portal.dev import self_signed
from portal.serving.certificate import Files, context_of

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class Tls:
    """The contexts of both sides; None for a plain connection."""

    servers: Callable[[], ssl.SSLContext] | None
    callers: ssl.SSLContext | None


@pytest.fixture(scope="session")
def tls_contexts(tmp_path_factory: pytest.TempPathFactory) -> Tls:
    folder = tmp_path_factory.mktemp("tls")
    self_signed.main(["--folder", str(folder)])
    files = Files(folder / "tls.crt", folder / "tls.key")
    context = context_of(files.read())
    return Tls(lambda: context, ssl.create_default_context(cafile=files.certificate))


@pytest.fixture(params=["plain", "tls"])
def tls(request: pytest.FixtureRequest, tls_contexts: Tls) -> Tls:
    """Each of the two kinds of a connection."""
    return tls_contexts if request.param == "tls" else Tls(None, None)
