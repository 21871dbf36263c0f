"""YAML alone: events of its parser to documents, plain scalars to values. No policy, no model."""
