"""The AdmissionReview on the wire: bytes to requests, decisions to bytes. No database."""
