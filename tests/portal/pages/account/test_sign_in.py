"""The page of signing in: what stands at its foot."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gatehouse_cli import __version__

if TYPE_CHECKING:
    from django.test import Client
    from pytest_django.fixtures import SettingsWrapper

pytestmark = pytest.mark.django_db


def test_the_foot_leads_to_the_api_and_names_the_version(client: Client) -> None:
    page = client.get("/accounts/login/").content.decode()
    assert 'href="/api/docs/"' in page
    assert f"Gatehouse {__version__}" in page
    assert ">Docs<" not in page


def test_the_foot_leads_to_the_documentation_of_the_house(
    client: Client, settings: SettingsWrapper
) -> None:
    settings.GATEHOUSE_DOCS_URL = "https://docs.example.com/gatehouse?a=1&b=2"
    page = client.get("/accounts/login/").content.decode()
    assert 'href="https://docs.example.com/gatehouse?a=1&amp;b=2">Docs<' in page
