"""What is measured beside the product: echoes, the engine without a database, the baseline."""
