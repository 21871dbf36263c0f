"""Change sets: states, content hash, three-way merge, needed approvals. Plain, no Django."""
