"""Sign-in, sign-out and the change of a password: Django's own views in our look."""

from __future__ import annotations

from django.contrib.auth import views
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse_lazy
from django.views.decorators.http import require_safe

from confirmhub.pages.forms import SignInForm

# Who is signed in gets the form all the same: a rule may ask for a fresher sign-in than theirs.
sign_in = views.LoginView.as_view(template_name="pages/sign_in.html", authentication_form=SignInForm)
sign_out = views.LogoutView.as_view()
password = views.PasswordChangeView.as_view(
    template_name="pages/password.html", success_url=reverse_lazy("pages:password_changed")
)


@require_safe
@login_required
def password_changed(request: HttpRequest) -> HttpResponse:
    """Say that the password is changed."""
    return render(request, "pages/password_changed.html")
