"""Pages of history: the list of revisions, and the revisions of one policy."""
