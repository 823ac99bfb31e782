"""What the pages accept. Anything else is refused whole, and changes nothing."""

from __future__ import annotations

from django import forms
from django.contrib.auth.forms import AuthenticationForm, UsernameField

from confirmhub.confirmations.ledger import MAX_REASON
from confirmhub.confirmations.states import Verdict

MAX_QUERY = 100  # characters
MAX_NAME = 150  # characters, as Django's users have at most
MAX_PASSWORD = 4096  # characters

_DIGEST = r"\A[0-9a-f]{64}\Z"
_SHOWN = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}:[0-9a-f]{64}"


class DecisionForm(forms.Form):
    """A verdict on what was on the screen."""

    verdict = forms.ChoiceField(choices=[(str(verdict), str(verdict)) for verdict in Verdict])
    digest_shown = forms.RegexField(_DIGEST, strip=False)
    reason = forms.CharField(max_length=MAX_REASON, required=False, strip=False)


class DenialsForm(forms.Form):
    """Several questions of one requester, each as it was on the screen: `id:digest`, separated by spaces."""

    shown = forms.RegexField(rf"\A{_SHOWN}( {_SHOWN}){{0,99}}\Z", max_length=11_000, strip=False)


class ReasonForm(forms.Form):
    """Why an approval is taken back."""

    reason = forms.CharField(max_length=MAX_REASON, required=False, strip=False)


class SearchForm(forms.Form):
    """Words to find in the history."""

    q = forms.CharField(max_length=MAX_QUERY, required=False)


class SignInForm(AuthenticationForm):
    """A name and a password. Django's own form tells browsers how long a name may be, and never checks."""

    username = UsernameField(max_length=MAX_NAME)
    password = forms.CharField(max_length=MAX_PASSWORD, strip=False)
