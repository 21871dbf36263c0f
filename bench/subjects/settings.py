"""Django's settings of each subject: the product's where it runs its code, next to none else."""

from __future__ import annotations

import os

SUBJECT = os.environ["SUBJECT"]
if SUBJECT in {"baseline", "engine"}:
    from portal.settings import *  # noqa: F403 - the same models, database and key
    from portal.settings import DATABASES, GATEHOUSE_WEB_THREADS

    if "pool" in DATABASES["default"]["OPTIONS"]:
        # Each of its threads works in a transaction of its own: none waits for a connection.
        DATABASES["default"]["OPTIONS"]["pool"]["max_size"] = GATEHOUSE_WEB_THREADS + 2
else:
    ALLOWED_HOSTS = ["127.0.0.1"]
    SECRET_KEY = "of no use here"  # noqa: S105 - nothing is signed
    USE_TZ = True
    apps = ("contrib.contenttypes", "contrib.auth", "contrib.sessions")
    INSTALLED_APPS = [f"django.{app}" for app in apps] if SUBJECT == "default" else []
    REST_FRAMEWORK = {} if SUBJECT == "default" else {"UNAUTHENTICATED_USER": None}
MIDDLEWARE: list[str] = []
ROOT_URLCONF = f"bench.subjects.{'baseline' if SUBJECT == 'baseline' else 'echoes'}"
