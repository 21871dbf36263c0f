"""Django as ASGI, with a fixed number of threads behind the event loop (``SUBJECT_THREADS``)."""

from __future__ import annotations

import os
from typing import Any

from a2wsgi import WSGIMiddleware
from django.core.wsgi import get_wsgi_application


def django() -> WSGIMiddleware:
    """Make the application that the web server calls."""
    application: Any = get_wsgi_application()
    return WSGIMiddleware(application, workers=int(os.environ["SUBJECT_THREADS"]))
