"""The page of all parts of the style in all states; for those who build pages."""
