"""Forms of Django's admin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django import forms

from policies.models import Cluster, WebhookCredential

if TYPE_CHECKING:
    _ModelForm = forms.ModelForm[Any]
else:
    _ModelForm = forms.ModelForm


class ClusterForm(_ModelForm):
    """A cluster; what needs a covering quota there has an editor of its own."""

    class Meta:
        model = Cluster
        fields: ClassVar = ["name", "description", "external_id", "unconfirmed_limit"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["unconfirmed_limit"].required = False

    def clean_unconfirmed_limit(self) -> int:
        """Read an empty field as no limit."""
        return self.cleaned_data["unconfirmed_limit"] or 0


class CredentialForm(_ModelForm):
    """What a new credential needs; its secret is made, not typed."""

    class Meta:
        model = WebhookCredential
        fields: ClassVar = ["cluster", "label", "expires"]
