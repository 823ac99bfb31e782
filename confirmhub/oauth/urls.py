"""The authorization server's paths: ours, and no others of django-oauth-toolkit.

The toolkit's own list would mount client administration, introspection and the device flow. The
resource's metadata (RFC 9728) is served by the bridge, whose resource it is.
"""

from __future__ import annotations

from django.urls import path

from confirmhub.oauth import account, consent, views

app_name = "oauth2_provider"  # the toolkit reverses names in it

urlpatterns = [
    path(".well-known/oauth-authorization-server", views.Metadata.as_view(), name="oauth-metadata"),
    path("oauth/authorize", consent.Authorize.as_view(), name="authorize"),
    path("oauth/token", views.Token.as_view(), name="token"),
    path("oauth/revoke", views.Revoke.as_view(), name="revoke"),
    path("oauth/register", views.Register.as_view(), name="register"),
    path("account/hosts", account.hosts, name="hosts"),
    path("account/hosts/disconnect-all", account.disconnect_all, name="disconnect_all"),
]
