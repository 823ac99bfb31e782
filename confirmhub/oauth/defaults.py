"""The settings of django-oauth-toolkit, all in one place. Pure: `confirmhub.settings` imports it.

Almost every protection of the toolkit is off by default; here each is on. What the toolkit
cannot do by a setting is in `validator` and `views`.
"""

from __future__ import annotations

from confirmhub.oauth.scopes import LEAST, SCOPES

ACCESS_TOKEN_SECONDS = 3600
REFRESH_TOKEN_SECONDS = 30 * 86400  # since the last refresh
CODE_SECONDS = 60

# The gates of RFC 9700, the security best current practice. REDIRECT_URI_SCHEME stays off: it
# would forbid the http loopback redirects of RFC 8252; `redirects.is_acceptable` draws that line.
RFC_9700_GATES = (
    "ACCESS_TOKEN_TRANSPORT",
    "AUTHZ_RESPONSE_ISS",
    "IMPLICIT_GRANT",
    "PASSWORD_GRANT",
    "PKCE_METHOD",
    "PKCE_REQUIRED",
    "REDIRECT_URI_MATCHING",
    "REFRESH_TOKEN",
    "TOKEN_STORAGE",
)


def provider(*, issuer: str, resource: str) -> dict[str, object]:
    """The value of OAUTH2_PROVIDER.

    `issuer` is the public origin without a trailing slash (clients compare it as a string, RFC
    8414 section 3.3); `resource` is the one RFC 8707 resource that tokens are for.
    """
    return {
        "SCOPES": dict(SCOPES),
        "DEFAULT_SCOPES": list(LEAST),
        # Without it issuer and endpoints follow the Host header. It works without OIDC, too.
        "OIDC_ISS_ENDPOINT": issuer,
        "OAUTH2_VALIDATOR_CLASS": "confirmhub.oauth.validator.Validator",
        "ACCESS_TOKEN_GENERATOR": "confirmhub.oauth.tokens.access_token",
        "REFRESH_TOKEN_GENERATOR": "confirmhub.oauth.tokens.refresh_token",
        "OAUTH2_GRANT_TYPES_SUPPORTED": ["authorization_code", "refresh_token", "client_credentials"],
        "OAUTH2_RESPONSE_TYPES_SUPPORTED": ["code"],
        "OAUTH2_TOKEN_ENDPOINT_AUTH_METHODS_SUPPORTED": [
            "none",
            "client_secret_basic",
            "client_secret_post",
        ],
        "OAUTH2_PROTECTED_RESOURCE_IDENTIFIER": resource,
        "OAUTH2_PROTECTED_RESOURCE_AUTHORIZATION_SERVERS": [issuer],
        "PKCE_REQUIRED": True,
        "ROTATE_REFRESH_TOKEN": True,
        "REFRESH_TOKEN_REUSE_PROTECTION": True,
        # The toolkit's own grace period needs tokens in clear; ours derives them (`tokens`).
        "REFRESH_TOKEN_GRACE_PERIOD_SECONDS": 0,
        "REFRESH_TOKEN_EXPIRE_SECONDS": REFRESH_TOKEN_SECONDS,
        "ACCESS_TOKEN_EXPIRE_SECONDS": ACCESS_TOKEN_SECONDS,
        "AUTHORIZATION_CODE_EXPIRE_SECONDS": CODE_SECONDS,
        "ALLOWED_REDIRECT_URI_SCHEMES": ["https", "http"],
        "ALLOW_LOCALHOST_LOOPBACK": True,
        "ALLOW_URI_WILDCARDS": False,
        "REQUEST_APPROVAL_PROMPT": "force",
        # Registration by document and by request are ours (`documents`, `views.Register`). The
        # toolkit's own would fetch inside a transaction and mint tokens without a person.
        "CIMD_ENABLED": False,
        "DCR_ENABLED": False,
        "APPLICATION_ADMIN_CLASS": "confirmhub.oauth.admin.ClientAdmin",
        "GRANT_ADMIN_CLASS": "confirmhub.oauth.admin.ReadOnlyAdmin",
        "ACCESS_TOKEN_ADMIN_CLASS": "confirmhub.oauth.admin.ReadOnlyAdmin",
        "REFRESH_TOKEN_ADMIN_CLASS": "confirmhub.oauth.admin.RefreshTokenAdmin",
        "ID_TOKEN_ADMIN_CLASS": "confirmhub.oauth.admin.UnusedAdmin",
        **{f"COMPLIANT_BCP_RFC9700_{gate}": True for gate in RFC_9700_GATES},
    }
