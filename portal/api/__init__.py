"""REST views that put together what admission and sync know; neither may ask the other."""
