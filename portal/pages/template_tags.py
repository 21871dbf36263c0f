"""Template tags for query strings."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlencode

from django import template

if TYPE_CHECKING:
    from collections.abc import Mapping

register = template.Library()


@register.simple_tag
def query_of(asked: Mapping[str, str]) -> str:
    """The query string that asks for these fields; empty ones are left out."""
    return urlencode({name: value for name, value in asked.items() if value})
