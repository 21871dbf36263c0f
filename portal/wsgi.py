"""The door that any web server opens; ``portal.serve`` opens the same one by itself."""

from __future__ import annotations

from portal.serving.application import begin, build

application = build()
begin()
