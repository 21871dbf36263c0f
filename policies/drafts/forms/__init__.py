"""The form of each kind of policy. No page, no request, no storage."""
