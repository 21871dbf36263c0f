"""Addresses that fail, beside all others: to see the pages that own up to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Never

from django.core.exceptions import PermissionDenied
from django.urls import path

from portal.urls import urlpatterns as working

if TYPE_CHECKING:
    from django.http import HttpRequest


def fails(_request: HttpRequest) -> Never:
    raise RuntimeError("a secret of ours")


def forbidden(_request: HttpRequest) -> Never:
    raise PermissionDenied


urlpatterns = [path("fails/", fails), path("forbidden/", forbidden), *working]
