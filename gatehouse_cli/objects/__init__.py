"""Objects of the portal in the terminal: their kinds, how one is found, its columns and manifest.

What a person reads of one object in sentences lives in ``stories``.
"""
