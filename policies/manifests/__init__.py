"""Files of policies: YAML to documents to objects; checked, imported, exported, in words."""
