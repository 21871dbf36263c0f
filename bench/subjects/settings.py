"""Django's settings of each subject: the product's for the baseline, next to none for others."""

from __future__ import annotations

import os

if os.environ["SUBJECT"] == "baseline":
    from portal.settings import *  # noqa: F403 - the same database, models and key
    from portal.settings import DATABASES, GATEHOUSE_WEB_THREADS

    if "pool" in DATABASES["default"]["OPTIONS"]:
        # Each of its threads works in a transaction of its own: none waits for a connection.
        DATABASES["default"]["OPTIONS"]["pool"]["max_size"] = GATEHOUSE_WEB_THREADS + 2
else:
    ALLOWED_HOSTS = ["127.0.0.1"]
    SECRET_KEY = "of no use here"  # noqa: S105 - nothing is signed
    USE_TZ = True
if os.environ["SUBJECT"] == "default":
    apps = ("django.contrib.contenttypes", "django.contrib.auth", "django.contrib.sessions")
    INSTALLED_APPS = [*apps, "rest_framework"]
elif os.environ["SUBJECT"] != "baseline":
    REST_FRAMEWORK = {"UNAUTHENTICATED_USER": None}
MIDDLEWARE: list[str] = []
ROOT_URLCONF = f"bench.subjects.{os.environ['SUBJECT']}"
