"""Pages of policies: the list, one policy, the editor, the import."""
