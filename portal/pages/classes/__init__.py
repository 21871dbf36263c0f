"""Pages of namespace classes: the list, a class with its namespaces, the editor with a preview."""
