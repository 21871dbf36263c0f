"""The product's own door with a sampler behind it; only the benchmark opens it."""

from __future__ import annotations

import os
from pathlib import Path

from bench.profile import FOLDER, Sampler
from portal.serving.application import begin, build_front

application = build_front()
begin()
Sampler(Path(os.environ[FOLDER])).start()
