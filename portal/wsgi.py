"""The door that the web server opens."""

from __future__ import annotations

import os
from pathlib import Path

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
    # Several processes count into files of this folder; it must be there before the first count.
    Path(os.environ["PROMETHEUS_MULTIPROC_DIR"]).mkdir(mode=0o700, parents=True, exist_ok=True)
_full = get_wsgi_application()

from portal.serving.lean import LeanHandler  # noqa: E402  needs Django to be set up

application = LeanHandler(_full)
