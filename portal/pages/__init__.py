"""The pages, one package for each family: its addresses, views, forms and queries. No rule."""
