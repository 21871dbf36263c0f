"""The command ``gatehouse``: it stands on the engine and plain manifests, and needs no Django.

What the portal's process does (``manage.py``) lives elsewhere, and is never imported here.
"""

__version__ = "0.1.0"
