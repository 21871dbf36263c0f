"""Settings of the demo's web process: the portal's own; only ``urls`` also offers its people."""

from portal.settings import *  # noqa: F403  all of them: the demo differs in its addresses alone

ROOT_URLCONF = "portal.dev.urls"
