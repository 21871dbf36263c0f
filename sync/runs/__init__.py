"""Who may work on a cluster, and when: lease, heartbeat, queue, pause. Not what a run does."""
