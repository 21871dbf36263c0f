"""Forms over policies with their rows: both are checked together, each error lands in its cell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.forms.models import BaseInlineFormSet, construct_instance, inlineformset_factory

from policies.models import Cluster, LimitedResource, PolicyObject, WebhookCredential
from policies.validators import PlacedError, findings_of, read_limited_resources

if TYPE_CHECKING:
    _ModelForm = forms.ModelForm[Any]
    _FormSet = BaseInlineFormSet[Any, Any, Any]
else:
    _ModelForm = forms.ModelForm
    _FormSet = BaseInlineFormSet


class RowFormSet(_FormSet):
    """The rows of a policy; shows what the policy's own check found in them."""

    def clean(self) -> None:
        """Put each finding into its cell; those about all rows above the table."""
        super().clean()
        findings = getattr(self.instance, "row_findings", [])
        mine = [finding for finding in findings if finding.row_set == self.prefix]
        rows = self.filled_forms()
        general = []
        for finding in mine:
            if finding.index is None or finding.index >= len(rows):
                general.append(finding)
                continue
            form = rows[finding.index]
            form.add_error(finding.column if finding.column in form.fields else None, finding)
        if general:
            raise ValidationError(general)

    def filled_forms(self) -> list[Any]:
        """The forms whose rows will be saved, in the order of their positions."""
        deleted = self.deleted_forms if self.is_bound else []
        filled = [
            form
            for form in self.forms
            if form not in deleted and (form.has_changed() or form.instance.pk)
        ]
        return sorted(filled, key=lambda form: form.cleaned_data.get("position") or 0)

    def draft_rows(self) -> list[Any]:
        """New rows with the content of the forms; numbered anew where each has its own number."""
        rows = []
        model: Any = self.model
        for index, form in enumerate(self.filled_forms()):
            row = model()
            for field in form.cleaned_data.keys() - {"id", "DELETE", self.fk.name}:
                setattr(row, field, form.cleaned_data[field])
            if self.prefix in {"rules", "scope_rows"}:
                row.position = index
            rows.append(row)
        return rows


class PolicyForm(_ModelForm):
    """A policy; its rows arrive in the same request and are judged with it."""

    expected_revision = forms.IntegerField(required=False, widget=forms.HiddenInput)
    reason = forms.CharField(
        required=False, max_length=1000, help_text="why, for the record", label="Reason"
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk:
            self.fields["expected_revision"].initial = self.instance.revision

    def clean(self) -> dict[str, Any] | None:
        """Refuse a form that was opened before somebody else's write."""
        cleaned = super().clean()
        expected = self.cleaned_data.get("expected_revision")
        if self.instance.pk and expected is not None and expected != self.instance.revision:
            message = "Somebody else changed this policy meanwhile. Open it again."
            raise ValidationError(message, code="stale")
        return cleaned

    def _post_clean(self) -> None:
        """Draft the rows before the policy is checked as a whole."""
        policy: PolicyObject = self.instance
        policy.row_findings = []
        formsets = [self._formset(row_set) for row_set in policy.row_sets]
        if not all(formset.is_valid() for formset in formsets):
            self.instance = construct_instance(self, policy, self._meta.fields, self._meta.exclude)
            return
        for formset in formsets:
            policy.draft_rows(str(formset.prefix), formset.draft_rows())
        policy.replaces = type(policy).objects.filter(pk=policy.pk).first() if policy.pk else None
        super()._post_clean()  # type: ignore[misc]  # Django's own hook, which stubs leave out

    def _formset(self, row_set: str) -> RowFormSet:
        rows_model: Any = getattr(type(self.instance), row_set).field.model
        factory: Any = inlineformset_factory(
            type(self.instance), rows_model, formset=RowFormSet, fields="__all__"
        )
        blank = type(self.instance)(pk=self.instance.pk)
        formset: RowFormSet = factory(self.data, instance=blank, prefix=row_set)
        return formset

    def _update_errors(self, errors: ValidationError) -> None:
        """Keep what belongs to rows for their own forms."""
        of_rows = [f for f in findings_of(errors) if isinstance(f, PlacedError) and f.row_set]
        self.instance.row_findings = of_rows
        own = {
            field: [single for single in singles if single not in of_rows]
            for field, singles in errors.error_dict.items()
        }
        super()._update_errors(  # type: ignore[misc]  # Django's own hook, which stubs leave out
            ValidationError({self._shown(field): found for field, found in own.items() if found})
        )

    def _shown(self, field: str) -> str:
        return field if field in self.fields else NON_FIELD_ERRORS


class ClusterForm(_ModelForm):
    """A cluster with its limitedResources as JSON."""

    limited_resources = forms.JSONField(
        required=False,
        initial=list,
        help_text="what needs a covering quota: a list of {resource, apiGroup, matchContains, "
        "matchScopes}",
    )

    class Meta:
        model = Cluster
        fields: ClassVar = ["name", "description", "external_id", "unconfirmed_limit"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["unconfirmed_limit"].required = False
        if self.instance.pk:
            entries = LimitedResource.objects.filter(cluster=self.instance).order_by("position")
            self.fields["limited_resources"].initial = [entry.to_manifest() for entry in entries]

    def clean_unconfirmed_limit(self) -> int:
        """Read an empty field as no limit."""
        return self.cleaned_data["unconfirmed_limit"] or 0

    def clean_limited_resources(self) -> Any:
        """Check the entries as the engine reads them."""
        entries = self.cleaned_data["limited_resources"] or []
        try:
            read_limited_resources(entries)
        except ValidationError as error:
            texts = [f"{f.path}: {f.messages[0]}" for f in findings_of(error)]  # type: ignore[attr-defined]  # all of these are placed
            raise ValidationError(texts, code="limited_resources") from error
        return entries


class CredentialForm(_ModelForm):
    """What a new credential needs; its secret is made, not typed."""

    class Meta:
        model = WebhookCredential
        fields: ClassVar = ["cluster", "label", "expires"]
