"""Django admin's AccountAdmin and groups: superusers only; accounts deactivated, not deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, User

from policies import services

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpRequest

    _UserAdmin = UserAdmin[User]
else:
    _UserAdmin = UserAdmin

admin.site.unregister(User)
admin.site.unregister(Group)


class _ForSuperusers:
    """Grants everything to superusers: anyone who may change an account may become anybody."""

    def has_module_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whether this person may see, add, change and delete."""
        del obj  # Django passes it by name
        return bool(request.user.is_active and request.user.is_superuser)

    has_view_permission = has_add_permission = has_module_permission
    has_change_permission = has_delete_permission = has_module_permission


@admin.register(User)
class AccountAdmin(_ForSuperusers, _UserAdmin):
    """Accounts: the record names them, so they are deactivated and never deleted."""

    actions = ("deactivate",)

    def has_delete_permission(self, _request: HttpRequest, _obj: Any = None) -> bool:
        """Whether accounts can be deleted: never."""
        return False

    @admin.action(description="Deactivate the selected accounts", permissions=["change"])
    def deactivate(self, request: HttpRequest, users: QuerySet[User]) -> None:
        """Deactivate them; ``end_access`` then ends their sessions and tokens."""
        # Saved one by one: a bulk update would send no signal.
        for user in users:
            user.is_active = False
            user.save(update_fields=["is_active"])
            self.log_change(request, user, "Deactivated.")


@admin.register(Group)
class PeopleGroupAdmin(_ForSuperusers, GroupAdmin):
    """Groups: deleting one revokes its roles, and the history of roles says so."""

    def delete_model(self, request: HttpRequest, group: Group) -> None:
        """Delete one group."""
        services.delete_group(group=group, author=request.user)

    def delete_queryset(self, request: HttpRequest, groups: QuerySet[Group]) -> None:
        """Delete the selected groups."""
        for group in groups:
            self.delete_model(request, group)
