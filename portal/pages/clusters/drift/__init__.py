"""Pages of drift: the list of synced objects, and the page of one with its sides and history."""
