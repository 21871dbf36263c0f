"""ConnectForm: a kubeconfig, pasted or as a file, and the name of its cluster."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator

from policies.models import Cluster
from policies.validators import DNS_LABEL
from sync.connect import join, kubeconfig


class SecretTextarea(forms.Textarea):
    """A text field that never renders its value, which holds a credential."""

    def format_value(self, value: Any) -> None:
        """None, whatever the value."""


class ConnectForm(forms.Form):
    """A name and a kubeconfig, pasted or as a file."""

    name = forms.CharField(
        max_length=63,
        validators=[RegexValidator(DNS_LABEL, "must be a DNS label: a-z, 0-9 and hyphens")],
        help_text="The cluster's name here; an existing cluster gets the new credential.",
    )
    context = forms.CharField(
        required=False, max_length=253, help_text="Empty: the file's current context."
    )
    text = forms.CharField(
        required=False,
        strip=False,
        label="Kubeconfig",
        widget=SecretTextarea(attrs={"rows": 12, "spellcheck": "false", "autocomplete": "off"}),
    )
    file = forms.FileField(required=False, label="Or a file")
    is_anyway = forms.BooleanField(
        required=False, label="Replace a working connection even if this one does not work"
    )
    is_other_cluster = forms.BooleanField(
        required=False, label="The name now means another cluster"
    )

    def __init__(self, *args: Any, may_add: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.may_add = may_add

    def clean_name(self) -> str:
        """Refuse a new name from those who may not add clusters."""
        cluster_name: str = self.cleaned_data["name"]
        if not self.may_add and not Cluster.objects.filter(name=cluster_name).exists():
            raise ValidationError("no cluster has this name, and you may not add one", code="new")
        return cluster_name

    def clean(self) -> dict[str, Any]:
        """Take the text from where it was given."""
        cleaned = super().clean() or {}
        uploaded, pasted = cleaned.get("file"), cleaned.get("text") or ""
        # Both or neither: which of two credentials counts must not be a guess.
        if bool(uploaded) == bool(pasted.strip()):
            self.add_error("text", "Paste a kubeconfig or choose a file: one of the two.")
            return cleaned
        try:
            # One byte more than allowed is enough to refuse a file that is too large.
            cleaned["text"] = uploaded.read(kubeconfig.LARGEST + 1).decode() if uploaded else pasted
        except UnicodeDecodeError:
            self.add_error("file", "This file is no text.")
        return cleaned

    def join_request(self) -> join.JoinRequest:
        """The request to join that the form describes."""
        request_fields = ("name", "text", "context", "is_anyway", "is_other_cluster")
        asked = {name: self.cleaned_data[name] for name in request_fields}
        return join.JoinRequest(**asked, must_work=True)
