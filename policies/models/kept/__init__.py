"""Table of what is kept from traffic: KeptTest. No service, no judging."""
