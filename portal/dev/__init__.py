"""What `make run` alone needs: supervisor, bundling, install, demo data. Nothing here is served."""
