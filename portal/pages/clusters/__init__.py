"""Pages of clusters: connection, status, runs, authority, drift."""
