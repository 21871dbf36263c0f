"""ClonePolicyView leads to the editor of a new policy in another namespace, begun with a copy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import Http404
from django.shortcuts import redirect
from django.urls import reverse

from policies import roles
from policies.models import Namespace
from portal.pages.policies.page import PolicyPage, address_of

if TYPE_CHECKING:
    from django.http import HttpRequest
    from django.http.response import HttpResponseBase


class ClonePolicyView(PolicyPage):
    """Where the copy goes, by ``to``; nothing is written before the new policy is saved."""

    def get(self, request: HttpRequest, *_args: Any, **_kwargs: Any) -> HttpResponseBase:  # type: ignore[override]  # a redirection
        """Redirect to the new policy, or back where it cannot be."""
        if self.manifest is None:
            raise Http404
        to = request.GET.get("to", "").replace("\0", "").strip()
        kind, cluster = self.place.kind, self.cluster.name
        is_there = Namespace.objects.filter(cluster=self.cluster, name=to).exists()
        permission = roles.writing(kind.name, "add")
        if not is_there or not roles.may(request.user, permission, cluster=cluster, namespace=to):
            messages.error(request, f"{to or 'It'} is not a namespace that you may write in.")
            return redirect(address_of(self.place))
        address = reverse("policy-new", args=[cluster, to, kind.plural])
        source = urlencode({"from": f"{self.namespace_name}/{self.place.name}"})
        return redirect(f"{address}?{source}")
