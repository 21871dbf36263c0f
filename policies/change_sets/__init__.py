"""What a change set may do and hold: states, content hash, three-way merge. Plain, no Django."""
