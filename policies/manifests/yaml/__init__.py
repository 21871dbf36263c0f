"""YAML alone: text to values with their places, and values to text. No policy and no model."""
