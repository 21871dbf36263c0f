"""The product's settings, without middleware and with the baseline's addresses."""

from __future__ import annotations

import os

from portal.settings import *  # noqa: F403 - the same database, models and key

ROOT_URLCONF = "bench.baseline.urls"
WSGI_APPLICATION = "bench.baseline.wsgi.application"
MIDDLEWARE: list[str] = []
BASELINE_FORM = os.environ.get("BASELINE_FORM", "load")
