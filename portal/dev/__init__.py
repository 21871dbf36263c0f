"""Development and trial: `make run`, the front-end bundle, install, demo data. Serves nothing."""
