"""YAML alone: parser events to documents, plain scalars to values. No policy, no model."""
