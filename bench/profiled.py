"""The product's own door with a sampler behind it; only the benchmark opens it."""

from __future__ import annotations

import os
from pathlib import Path

from bench.profile import FOLDER, Sampler
from portal.wsgi import application

__all__ = ["application"]

Sampler(Path(os.environ[FOLDER])).start()
