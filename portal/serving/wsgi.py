"""The WSGI application for other web servers; importing it loads the policies."""

from __future__ import annotations

from portal.serving.application import begin, build

application = build()
begin()
