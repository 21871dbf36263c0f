"""The door that the web server opens for the baseline."""

from __future__ import annotations

import os

from django.core.wsgi import get_wsgi_application

os.environ["DJANGO_SETTINGS_MODULE"] = "bench.baseline.settings"
application = get_wsgi_application()
