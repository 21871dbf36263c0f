"""The WSGI application for any web server; ``portal.serve`` serves the same one."""

from __future__ import annotations

from portal.serving.application import begin, build

application = build()
begin()
