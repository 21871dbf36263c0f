"""Pages of kept tests: the list, and one with its result today. No rule of theirs."""
