"""API tokens sent with requests: authentication and scope. Issuing them is a service."""
