"""The whole result as a file, sent while it is read."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from django.http import Http404, HttpResponseBadRequest, StreamingHttpResponse
from django.views.generic import View

from admission.record.search import stream
from policies.tokens import TakesToken
from portal.pages.decisions.access import RecordMixin

if TYPE_CHECKING:
    from django.http import HttpRequest
    from django.http.response import HttpResponseBase

_WRITERS: Final = {"csv": stream.as_csv, "jsonl": stream.as_jsonl}


class ExportView(TakesToken, RecordMixin, View):
    """All decisions that fit, as CSV or JSON Lines."""

    def get(self, _request: HttpRequest, form: str) -> HttpResponseBase:
        """Stream the file; a query that says nothing sensible is 400."""
        write = _WRITERS.get(form)
        if write is None:
            raise Http404
        search = self.search()
        if not search.is_valid:
            return HttpResponseBadRequest("The filter cannot be read.\n", content_type="text/plain")
        response = StreamingHttpResponse(write(search.found), content_type=stream.FORMATS[form])
        name = f"decisions-{datetime.now(UTC):%Y%m%d-%H%M%S}.{form}"
        response["Content-Disposition"] = f'attachment; filename="{name}"'
        return response
