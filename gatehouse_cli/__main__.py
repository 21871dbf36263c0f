"""``python -m gatehouse_cli``: the command ``gatehouse`` from a checkout."""

from __future__ import annotations

from gatehouse_cli.main import main

main()
