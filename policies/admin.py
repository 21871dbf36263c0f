"""Django's ModelAdmin classes, forms and inlines; policies, revisions and charges read-only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.urls import reverse
from django.utils.html import format_html

from policies import services
from policies.drafts.kinds import BY_NAME
from policies.ledger.release import release
from policies.ledger.usage import UNKNOWN
from policies.models import (
    Charge,
    Cluster,
    LimitRange,
    LimitRangeRow,
    MetadataPolicy,
    MetadataPolicyRule,
    Namespace,
    PolicyObject,
    PolicyRevision,
    PriorityClass,
    ResourceQuota,
    ResourceQuotaRow,
    ScopeSelectorRow,
    WebhookCredential,
)
from policies.plurals import counted

if TYPE_CHECKING:
    _ModelForm = forms.ModelForm[Any]
else:
    _ModelForm = forms.ModelForm


class ClusterForm(_ModelForm):
    """A cluster; its limitedResources have an editor of their own."""

    class Meta:
        model = Cluster
        fields: ClassVar = [
            *("name", "description", "external_id"),
            *("unconfirmed_limit", "kubernetes_version"),
        ]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["unconfirmed_limit"].required = False

    def clean_unconfirmed_limit(self) -> int:
        """Read an empty field as no limit."""
        return self.cleaned_data["unconfirmed_limit"] or 0


class CredentialForm(_ModelForm):
    """A new credential; its secret is generated."""

    class Meta:
        model = WebhookCredential
        fields: ClassVar = ["cluster", "label", "expires"]


if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpRequest

    _ModelAdmin = admin.ModelAdmin[Any]
    _Inline = admin.TabularInline[Any, Any]
else:
    _ModelAdmin = admin.ModelAdmin
    _Inline = admin.TabularInline


class _Recorded(_ModelAdmin):
    """Saves and deletes through ``services``; names are fixed once saved."""

    fixed: ClassVar[list[str]] = ["name"]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        """Fix the names of a stored object: its history goes by them."""
        return [*super().get_readonly_fields(request, obj), *(self.fixed if obj else [])]

    def save_model(self, request: HttpRequest, obj: Any, form: Any, _change: Any) -> None:
        """Write through a service, and show its lints."""
        saved = self.write(request, obj, form)
        for lint in saved.lints:
            messages.warning(request, f"{lint.policy.name}: {lint.message} ({lint.code})")

    def write(self, request: HttpRequest, obj: Any, form: Any) -> services.Saved:
        """Write the object through a service."""
        raise NotImplementedError

    def remove(self, request: HttpRequest, obj: Any) -> None:
        """Delete the object through a service."""
        raise NotImplementedError

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: Any) -> None:
        """Do nothing: rows were saved together with their object."""

    def construct_change_message(
        self, _request: HttpRequest, _form: Any, _formsets: Any, add: Any = None
    ) -> Any:
        """Name no fields: the revision has the changes."""
        return [{"added": {}}] if add else [{"changed": {}}]

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        """Delete through a service."""
        self.remove(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        """Delete each through a service."""
        for obj in queryset:
            self.remove(request, obj)


@admin.register(Cluster)
class ClusterAdmin(_Recorded):
    """Clusters; their limitedResources have an editor of their own."""

    form = ClusterForm
    list_display = ["name", "description", "policy_revision", "updated"]
    search_fields = ["name"]

    def write(self, request: HttpRequest, obj: Any, _form: Any) -> services.Saved:
        """Save the cluster."""
        return services.save_cluster(cluster=obj, user=request.user.get_username())

    def remove(self, request: HttpRequest, obj: Any) -> None:
        """Delete the cluster and all it has."""
        services.delete_cluster(cluster=obj, user=request.user.get_username())


@admin.register(Namespace)
class NamespaceAdmin(_Recorded):
    """Namespaces."""

    fixed: ClassVar[list[str]] = ["cluster", "name"]
    list_display = ["name", "cluster", "phase", "updated"]
    list_filter = ["cluster", "phase"]
    search_fields = ["name"]

    def write(self, request: HttpRequest, obj: Any, _form: Any) -> services.Saved:
        """Save the namespace."""
        return services.save_namespace(namespace=obj, user=request.user.get_username())

    def remove(self, request: HttpRequest, obj: Any) -> None:
        """Delete the namespace and its policies."""
        services.delete_namespace(namespace=obj, user=request.user.get_username())


class _Fixed(_ModelAdmin):
    """Added at most, never changed or deleted by hand."""

    def has_change_permission(self, _request: HttpRequest, _obj: Any = None) -> bool:
        """Refuse every change by hand."""
        return False

    def has_delete_permission(self, _request: HttpRequest, _obj: Any = None) -> bool:
        """Refuse every deletion by hand."""
        return False


class _ReadOnly(_Fixed):
    """Shown, never changed."""

    def has_add_permission(self, _request: HttpRequest, _obj: Any = None) -> bool:
        """Refuse: only the product writes here."""
        return False


class _Rows(_Inline):
    extra = 0
    can_delete = False


class LimitRangeRows(_Rows):
    """Rows of a limit range."""

    model = LimitRangeRow


class MetadataPolicyRules(_Rows):
    """Rules of a metadata policy."""

    model = MetadataPolicyRule


class ResourceQuotaRows(_Rows):
    """Rows of a quota; used amounts are the ledger's."""

    model = ResourceQuotaRow
    readonly_fields = ["used"]

    @admin.display(description="used")
    def used(self, quota_row: ResourceQuotaRow) -> str:
        """The ledger's used amount of this name; empty for an untracked name."""
        usage_of_quota = getattr(quota_row.quota, "usage", None) if quota_row.quota_id else None
        if usage_of_quota is None:
            return ""
        is_unknown = quota_row.resource in quota_row.quota.uncounted
        return UNKNOWN if is_unknown else str(usage_of_quota.used.get(quota_row.resource, ""))


class ScopeSelectorRows(_Rows):
    """Scope selector of a quota."""

    model = ScopeSelectorRow


class _PolicyAdmin(_ReadOnly):
    """Shown with a link to the editor, which checks, warns and asks for a reason."""

    list_display = ["name", "namespace", "enforcement", "revision", "updated", "editor"]
    list_filter = ["enforcement", "namespace__cluster"]
    list_select_related = ["namespace__cluster"]
    search_fields = ["name", "namespace__name"]
    readonly_fields = ["editor"]

    @admin.display(description="written here")
    def editor(self, policy: PolicyObject) -> str:
        """A link to the policy's editor."""
        plural_of_kind = BY_NAME[policy.kind].plural
        editor_place = (policy.owner.name, policy.namespace_name, plural_of_kind, policy.name)
        return format_html('<a href="{}">its editor</a>', reverse("policy", args=editor_place))


@admin.register(LimitRange)
class LimitRangeAdmin(_PolicyAdmin):
    """Limit ranges."""

    inlines = [LimitRangeRows]


@admin.register(MetadataPolicy)
class MetadataPolicyAdmin(_PolicyAdmin):
    """Metadata policies."""

    inlines = [MetadataPolicyRules]


@admin.register(ResourceQuota)
class ResourceQuotaAdmin(_PolicyAdmin):
    """Quotas."""

    inlines = [ResourceQuotaRows, ScopeSelectorRows]


@admin.register(PriorityClass)
class PriorityClassAdmin(_ReadOnly):
    """Priority classes."""

    list_display = ["name", "cluster", "value", "global_default", "updated"]
    list_filter = ["cluster"]
    search_fields = ["name"]


class _MayAct:
    """Allows actions to users who may change quotas everywhere."""

    def has_act_permission(self, request: HttpRequest) -> bool:
        """Whether this user may run the page's actions."""
        return request.user.has_perm("policies.change_resourcequota")


@admin.register(PolicyRevision)
class PolicyRevisionAdmin(_ReadOnly):
    """History; a policy's own page of versions restores them."""

    list_display = ["created", "cluster", "namespace", "kind", "name", "number", "action"]
    list_filter = ["kind", "action", "cluster"]
    search_fields = ["name", "namespace", "user"]
    actions = None


@admin.register(Charge)
class ChargeAdmin(_MayAct, _ReadOnly):
    """The quota ledger."""

    list_display = ["resource", "object_name", "namespace", "quota", "amounts", "state"]
    list_filter = ["state", "cluster"]
    search_fields = ["object_name", "=object_uid", "namespace"]
    list_select_related = ["quota", "cluster"]
    actions = ["release"]

    @admin.action(description="Release: the object is gone", permissions=["act"])
    def release(self, request: HttpRequest, queryset: QuerySet[Charge]) -> None:
        """Release the charges of the selected objects in all their quotas."""
        # By object, not by row: an object is charged to all its quotas, or to none.
        released_objects = {(row.cluster.name, row.resource, row.object_uid) for row in queryset}
        released_count = sum(
            release(cluster, resource=resource, uid=uid, user=request.user.get_username())
            for cluster, resource, uid in sorted(released_objects)
        )
        messages.success(request, f"{counted(released_count, 'charges')} released.")


@admin.register(WebhookCredential)
class WebhookCredentialAdmin(_MayAct, _Fixed):
    """Credentials: issued here, shown once, revoked by action; revoked ones stay."""

    form = CredentialForm
    list_display = ["label", "cluster", "created", "expires", "revoked"]
    list_filter = ["cluster"]
    actions = ["revoke"]

    def save_model(self, request: HttpRequest, obj: Any, _form: Any, _change: Any) -> None:
        """Issue the credential, and show its secret."""
        issued, secret = services.issue_webhook_credential(
            user=request.user.get_username(),
            cluster=obj.cluster,
            label=obj.label,
            expires=obj.expires,
        )
        # Django logs the object by its key.
        obj.pk = issued.pk
        messages.warning(request, f"The secret, shown only once: {secret}")

    @admin.action(description="Revoke the selected credentials", permissions=["act"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[WebhookCredential]) -> None:
        """Revoke the selected credentials."""
        for credential in queryset:
            services.revoke_webhook_credential(
                credential=credential, user=request.user.get_username()
            )
