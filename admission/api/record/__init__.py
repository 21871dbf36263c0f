"""REST of what people keep about the record: saved views, legal holds; counts and retention."""
