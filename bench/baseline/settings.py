"""The product's settings, without middleware and with the baseline's addresses."""

from __future__ import annotations

import os

from portal.settings import *  # noqa: F403 - the same database, models and key
from portal.settings import DATABASES, GATEHOUSE_WEB_THREADS

ROOT_URLCONF = "bench.baseline.urls"
WSGI_APPLICATION = "bench.baseline.wsgi.application"
MIDDLEWARE: list[str] = []
BASELINE_FORM = os.environ.get("BASELINE_FORM", "load")
if "pool" in DATABASES["default"]["OPTIONS"]:
    # Each of its threads works in a transaction of its own: none should wait for a connection.
    DATABASES["default"]["OPTIONS"]["pool"]["max_size"] = GATEHOUSE_WEB_THREADS + 2
