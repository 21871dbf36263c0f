"""Pages of namespaces: what binds there, what would happen to an object, what is used."""
