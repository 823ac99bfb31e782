"""Sign-in, sign-out and the change of a password: Django's own views in our look."""

from __future__ import annotations

from urllib.parse import urlsplit

from django.contrib.auth import views
from django.contrib.auth.decorators import login_required
from django.contrib.auth.forms import AuthenticationForm
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse, reverse_lazy
from django.views.decorators.http import require_safe

from confirmhub.pages.forms import SignInForm


class SignIn(views.LoginView):
    """Who is signed in gets the form all the same: a rule may ask for a fresher sign-in than theirs."""

    template_name = "pages/sign_in.html"
    authentication_form = SignInForm

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        response = super().form_valid(form)
        wanted = response["Location"]
        if urlsplit(wanted).path != reverse("oauth2_provider:authorize"):
            return response
        # It may send the person on to a host at once, and browsers hold each redirect that follows a form
        # to that page's `form-action`, which is us alone. So this way goes over a page.
        return render(self.request, "pages/signed_in.html", {"next": wanted})


sign_in = SignIn.as_view()
sign_out = views.LogoutView.as_view()
password = views.PasswordChangeView.as_view(
    template_name="pages/password.html", success_url=reverse_lazy("pages:password_changed")
)


@require_safe
@login_required
def password_changed(request: HttpRequest) -> HttpResponse:
    """Say that the password is changed."""
    return render(request, "pages/password_changed.html")
