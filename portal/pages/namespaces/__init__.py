"""Pages of namespaces: list, policies in effect, trial of an object, usage by owner."""
