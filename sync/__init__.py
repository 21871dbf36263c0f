"""Clusters: client, connections, installation, passes, runs, inventory. No page, no review."""
