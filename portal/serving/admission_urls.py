"""URL patterns of the lean stack: those under ``/admission/``."""

from __future__ import annotations

from admission.api.urls import urlpatterns as _all

urlpatterns = [each for each in _all if str(each.pattern).startswith("admission/")]
