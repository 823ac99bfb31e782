"""The admin as operators meet it: the sign-in of all of confirmhub, and a first page in their order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from django.contrib import admin
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.db.models.options import Options
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.text import capfirst

DASHBOARD = "review:dashboard"

# What stands on the first page, in this order, and what it is for.
SECTIONS = {
    "What is asked": {
        "confirmations.confirmation": "Questions, answers and outcomes. Deny, take back or revoke one.",
        "confirmations.halt": "Keep approved actions from being carried out, all or some, for now.",
        "confirmations.rule": "Who is asked about which actions, and how long a yes can be used.",
        DASHBOARD: "How much waits, how fast it is decided, and what went wrong.",
    },
    "Programs": {
        "oauth.service": "Ask for themselves, with a secret that you give them.",
        "oauth.client": "Hosts that people have let act for them.",
        "confirmations.hook": "Where services are told what became of their questions.",
    },
    "People": {
        "auth.user": "Who signs in, and who of them may look in here.",
        "auth.group": "Who approves together, and what they may do here.",
    },
    "Records": {
        "admin.logentry": "Who changed rules, programs, people and groups in here, and how.",
        "oauth.accesstoken": "Which program may act, for whom, until when.",
        "oauth.refreshtoken": "What programs renew that with.",
        "oauth.code": "Sign-ins of programs, and whether they were completed.",
    },
}
REST = "Other"


@dataclass(frozen=True, slots=True)
class Entry:
    """One place to go to."""

    name: str
    link: str
    add: str = ""
    """Where one more is made; empty where the viewer may not, or nobody makes any."""

    about: str = ""


class ReviewSite(admin.AdminSite):
    """Django's admin, in the place of its own site."""

    site_header = site_title = "confirmhub review"
    index_title = "Review"
    enable_nav_sidebar = False

    def login(self, request: HttpRequest, extra_context: dict[str, object] | None = None) -> HttpResponse:
        """Go to the page where everybody signs in and come back; where `next` leads, that page checks.

        One look, one lockout, one place to type a password.

        Raises:
            PermissionDenied: Signed in, but not as staff: the password once more would help nobody.
        """
        del extra_context  # Django's signature
        if request.user.is_authenticated:
            raise PermissionDenied
        return redirect_to_login(request.GET.get("next") or reverse("admin:index"))

    def index(self, request: HttpRequest, extra_context: dict[str, object] | None = None) -> TemplateResponse:
        """The first page."""
        sections = list(self._sections(request))
        return super().index(request, {"sections": sections, **(extra_context or {})})

    def list_title(self, opts: Options[Model]) -> str:
        """What the list of a model is called, here and wherever a page leads to it."""
        own: str = getattr(self._registry[opts.model], "list_title", "")
        return own or capfirst(str(opts.verbose_name_plural))

    def _sections(self, request: HttpRequest) -> Iterator[tuple[str, list[Entry]]]:
        entries = self._entries(request)
        for title, about in SECTIONS.items():
            mine = [replace(entries.pop(key), about=words) for key, words in about.items() if key in entries]
            if mine:
                yield title, mine
        if entries:
            yield REST, list(entries.values())

    def _entries(self, request: HttpRequest) -> dict[str, Entry]:
        """What this person may see."""
        found = {
            f"{app['app_label']}.{each['object_name'].lower()}": Entry(
                name=self.list_title(self._registry[each["model"]].opts),
                link=each["admin_url"],
                add=each["add_url"] or "",
            )
            for app in self.get_app_list(request)
            for each in app["models"]
            if each["admin_url"]
        }
        if request.user.has_perm("confirmations.view_confirmation"):
            found[DASHBOARD] = Entry(name="Dashboard", link=reverse(DASHBOARD))
        return found
