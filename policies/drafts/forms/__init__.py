"""``show`` and ``build`` of each kind: manifest to Sheet, lines and cells to manifest."""
