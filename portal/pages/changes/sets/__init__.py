"""Pages of changes: the list, a new one, one with its objects and steps. No rule of theirs."""
