"""What is measured beside the product: three echoes and the engine without a database."""
