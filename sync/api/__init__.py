"""REST views of clusters: connection, runs, synced objects, ownership, alerts, standing."""
