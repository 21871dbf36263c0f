"""Clusters: connections, runs, and the comparison of both sides. No page and no review."""
