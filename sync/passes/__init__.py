"""Passes over a cluster: read, compare, write; resolutions of drift; the life cycle of runs."""
