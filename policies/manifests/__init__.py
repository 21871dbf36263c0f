"""Manifests: text to values to models and back. The only place for files of policies."""
