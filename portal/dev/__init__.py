"""Development and trial: `make run`, the front-end bundle, `.venv`, demo data. Serves nothing."""
