"""Accounts and groups in Django's admin: for superusers, who deactivate and never delete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, User

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpRequest

    _UserAdmin = UserAdmin[User]
else:
    _UserAdmin = UserAdmin

admin.site.unregister(User)
admin.site.unregister(Group)


class _ForSuperusers:
    """Whoever may change an account may become anybody, so no smaller right is enough."""

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Whether the app is listed at all."""
        return _is_superuser(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """See names and rights."""
        del obj
        return _is_superuser(request)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Make one."""
        return _is_superuser(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Change one."""
        del obj
        return _is_superuser(request)


@admin.register(User)
class AccountAdmin(_ForSuperusers, _UserAdmin):
    """What people did stays theirs: an account is deactivated, never deleted."""

    actions = ("deactivate",)

    def has_delete_permission(self, _request: HttpRequest, _obj: Any = None) -> bool:
        """Nobody."""
        return False

    @admin.action(description="Deactivate the selected accounts", permissions=["change"])
    def deactivate(self, request: HttpRequest, users: QuerySet[User]) -> None:
        """End their sessions and tokens, too."""
        for user in users:
            user.is_active = False
            user.save(update_fields=["is_active"])
            self.log_change(request, user, "Deactivated.")


@admin.register(Group)
class PeopleGroupAdmin(_ForSuperusers, GroupAdmin):
    """Groups carry roles."""

    def has_delete_permission(self, request: HttpRequest, _obj: Any = None) -> bool:
        """Their roles go with them."""
        return _is_superuser(request)


def _is_superuser(request: HttpRequest) -> bool:
    return bool(request.user.is_active and request.user.is_superuser)
