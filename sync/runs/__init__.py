"""Which worker may run on a cluster, and when: lease, heartbeat, queue, pause. No pass itself."""
