"""The groups that people are given their rights by. `migrate` makes those that are missing.

What an administrator has changed in one stays as it is. Whom a rule lets approve is the rule's to say: the
approvers here are a group to begin with, and it holds no other right.
"""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import Group, Permission
from django.db.models import Q

APPROVERS, OPERATORS, AUDITORS, ADMINISTRATORS = "Approvers", "Operators", "Auditors", "Administrators"

_SEE = Q(content_type__app_label="confirmations", codename__startswith="view_") | Q(
    content_type__app_label="admin", codename="view_logentry"
)
_ACT = Q(content_type__app_label="confirmations", codename__in=("change_confirmation", "add_halt"))
_RULE = Q(content_type__app_label="confirmations", codename__endswith="_rule") | Q(
    content_type__app_label="confirmations", codename__endswith="_hook"
)
_ACCOUNTS = Q(content_type__app_label="auth", content_type__model__in=("user", "group")) | Q(
    content_type__app_label="oauth", content_type__model__in=("client", "service")
)
PERMISSIONS = {
    APPROVERS: Q(pk__in=()),
    OPERATORS: _SEE | _ACT,
    AUDITORS: _SEE,
    ADMINISTRATORS: _SEE | _ACT | _RULE | _ACCOUNTS,
}


def make_roles(using: str, **_: Any) -> None:
    """Make the groups that are not there. Runs after each `migrate`, when all permissions are there."""
    for name, allowed in PERMISSIONS.items():
        group, is_new = Group.objects.using(using).get_or_create(name=name)
        if is_new:
            group.permissions.set(Permission.objects.using(using).filter(allowed))
