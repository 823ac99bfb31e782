"""The one settings file. Every variable is read through `env`, and a bad value stops the start."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.utils.csp import CSP

from confirmhub import env
from confirmhub.oauth import defaults as oauth

BASE_DIR = Path(__file__).resolve().parent.parent

DEBUG = env.flag("DEBUG", default=False)
SECRET_KEY = env.secret("SECRET_KEY")

# Where people and hosts reach us. Issuer and resource derive from it, never from a request's Host header.
PUBLIC_URL = env.origin("PUBLIC_URL", "http://localhost:8000")
ISSUER = PUBLIC_URL
MCP_RESOURCE = f"{PUBLIC_URL}/mcp"
HTTPS = PUBLIC_URL.startswith("https://")
ALLOWED_HOSTS = [urlsplit(PUBLIC_URL).hostname or ""]

INSTALLED_APPS = [
    "confirmhub.confirmations",
    "confirmhub.oauth",  # before oauth2_provider, whose templates it replaces
    "confirmhub.pages",
    "confirmhub.review",
    "confirmhub.notifications",
    "confirmhub.api",
    "confirmhub.aap",
    "confirmhub.ops",
    "oauth2_provider",
    "rest_framework",
    "axes",
    "confirmhub.review.apps.ReviewAdminConfig",  # django.contrib.admin
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.middleware.csp.ContentSecurityPolicyMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "confirmhub.pages.middleware.private_pages",
    "confirmhub.pages.middleware.plain_requests",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "axes.middleware.AxesMiddleware",
    "confirmhub.pages.middleware.worded_refusals",
]
ROOT_URLCONF = "confirmhub.urls"
WSGI_APPLICATION = None
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    }
]

_database = env.database("DATABASE_URL")
_tls = {key: _database.pop(key) for key in ("sslmode", "sslrootcert") if key in _database}
DATABASES: dict[str, Any] = {
    "default": {
        "ENGINE": "confirmhub.database",
        **_database,
        # The ledger opens its own transactions, and `redeem` must be the outermost one: what an outer
        # rollback can undo is not single-use.
        "ATOMIC_REQUESTS": False,
        # Django runs in a fixed pool of threads, so each keeps its connection.
        "CONN_MAX_AGE": None,
        "CONN_HEALTH_CHECKS": True,
        # A move that waits longer than this for its row gives up with a clear refusal.
        "OPTIONS": {
            "options": f"-c lock_timeout=3s -c statement_timeout={env.STATEMENT}s",
            **env.CONNECTION,
            **_tls,
        },
    }
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 12},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "pages:sign_in"
LOGIN_REDIRECT_URL = "pages:inbox"
LOGOUT_REDIRECT_URL = "pages:sign_in"
AXES_FAILURE_LIMIT = 5
AXES_COOLOFF_TIME = 0.25  # hours
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_LOCKOUT_TEMPLATE = "registration/locked_out.html"
AXES_DISABLE_ACCESS_LOG = True
AXES_VERBOSE = False
AXES_ENABLE_ADMIN = False  # `manage.py axes_reset_username` lets somebody in again

SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SESSION_COOKIE_NAME = "__Host-session" if HTTPS else "session"
CSRF_COOKIE_NAME = "__Host-csrf" if HTTPS else "csrf"
SESSION_COOKIE_HTTPONLY = CSRF_COOKIE_HTTPONLY = True
SESSION_COOKIE_AGE = 12 * 3600  # seconds
CSRF_FAILURE_VIEW = "confirmhub.pages.errors.csrf_failure"
CSRF_TRUSTED_ORIGINS = [PUBLIC_URL]
X_FRAME_OPTIONS = "DENY"
# No other site ever gets a Referer. Not "no-referrer": under it browsers send `Origin: null` with our own
# forms too (Fetch, "append a request Origin header"), and the CSRF check rightly refuses that.
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_PROXY_SSL_HEADER = (
    ("HTTP_X_FORWARDED_PROTO", "https") if env.flag("BEHIND_TLS_PROXY", default=False) else None
)
# Whose word counts for the address that attempts and refusals are counted by.
TRUSTED_PROXIES = env.networks("TRUSTED_PROXIES")
SECURE_HSTS_SECONDS = 365 * 86_400 if HTTPS else 0
SECURE_CSP = {
    "default-src": [CSP.NONE],
    "script-src": [CSP.SELF],
    "style-src": [CSP.SELF],
    "img-src": [CSP.SELF],
    "font-src": [CSP.SELF],
    "connect-src": [CSP.SELF],
    "form-action": [CSP.SELF],
    "frame-ancestors": [CSP.NONE],
    "base-uri": [CSP.NONE],
}
DATA_UPLOAD_MAX_MEMORY_SIZE = 64 * 1024  # bytes; `ops.inlet` refuses more before Django is asked

LANGUAGE_CODE = "en"
USE_I18N = False
FORMAT_MODULE_PATH = "confirmhub.review.formats"
USE_TZ = True
TIME_ZONE = "UTC"

STATIC_URL = "/static/"
STATIC_ROOT = env.text("STATIC_ROOT", str(BASE_DIR / "staticfiles"))
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}

# What a host may seal its question's state with, and the key that OAuth tokens derive from.
SEALING_KEYS = env.secrets("SEALING_KEYS")
TOKEN_KEY = env.secret("TOKEN_KEY")
# What receipts are signed with. The first signs; receipts of all of them can be verified.
RECEIPT_KEYS = env.secrets("RECEIPT_KEYS")

# All five from the first migration on, since a later swap cannot be migrated.
OAUTH2_PROVIDER_APPLICATION_MODEL = "oauth.Client"
OAUTH2_PROVIDER_GRANT_MODEL = "oauth.Code"
OAUTH2_PROVIDER_ACCESS_TOKEN_MODEL = "oauth.AccessToken"  # noqa: S105 - a model, not a token
OAUTH2_PROVIDER_REFRESH_TOKEN_MODEL = "oauth.RefreshToken"  # noqa: S105 - the same
OAUTH2_PROVIDER_ID_TOKEN_MODEL = "oauth.IDToken"  # noqa: S105 - the same
# What a refresh is answered that a host sends where it should ask for consent to more (design notes in
# confirmhub/oauth/stepup.py): interaction_required, invalid_grant or off.
STEP_UP_ANSWER = env.choice("STEP_UP_ANSWER", ("interaction_required", "invalid_grant", "off"))
OAUTH2_PROVIDER = oauth.provider(issuer=ISSUER, resource=MCP_RESOURCE)

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["confirmhub.api.auth.BearerAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "confirmhub.api.errors.handle",
    "UNAUTHENTICATED_USER": None,
}

# The guarded tools: modules that register themselves, and the folders that the file tools may touch.
GUARDED_TOOLS = env.modules("GUARDED_TOOLS", "mcp_bridge.tools.files")
FILE_ROOTS = env.folders("FILE_ROOTS")

# How long finished confirmations are kept, in whole days; not set: for ever. Their seals stay in any case.
RETAIN_FOR = env.days("RETAIN_DAYS")

CELERY_BROKER_URL = env.broker("CELERY_BROKER_URL", "memory://localhost")

# Whether notices carry the arguments, without those whose name has one of these words in it.
NOTICE_ARGUMENTS = env.flag("NOTICE_ARGUMENTS", default=False)
SECRET_FIELDS = env.words(
    "SECRET_FIELDS",
    "password,passwd,passphrase,secret,token,apikey,authorization,credential,privatekey,cookie",
)
# For development: webhooks may go to this machine, and without TLS.
WEBHOOKS_TO_LOOPBACK = env.flag("WEBHOOKS_TO_LOOPBACK", default=False)

# Mail goes to a server, or, in the embedded default, into files of a folder.
_mail_folder = env.text("EMAIL_FILE_PATH", "")
_mail_server = {
    "host": env.text("EMAIL_HOST", "localhost"),
    "port": env.port("EMAIL_PORT", 25),
    "username": env.text("EMAIL_HOST_USER", ""),
    "password": env.text("EMAIL_HOST_PASSWORD", ""),
    "use_tls": env.flag("EMAIL_USE_TLS", default=False),
    "use_ssl": env.flag("EMAIL_USE_SSL", default=False),
    "timeout": 10,  # seconds
}
MAILERS = {
    "default": {
        "BACKEND": "confirmhub.notifications.channels.folder.EmailBackend",
        "OPTIONS": {"file_path": _mail_folder},
    }
    if _mail_folder
    else {"BACKEND": "django.core.mail.backends.smtp.EmailBackend", "OPTIONS": _mail_server}
}
DEFAULT_FROM_EMAIL = env.text("DEFAULT_FROM_EMAIL", "confirmhub@localhost")

# Figures at /metrics for who holds this token, and traces to this address; without them, neither.
METRICS_TOKEN = env.secret("METRICS_TOKEN") if env.given("METRICS_TOKEN") else ""
OTEL_EXPORTER_OTLP_ENDPOINT = env.text("OTEL_EXPORTER_OTLP_ENDPOINT", "")

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {
            "()": "confirmhub.logs.Formatter",
            "format": "%(asctime)s %(levelname)s %(name)s %(message)s",
        },
        "json": {"()": "confirmhub.logs.JsonFormatter"},
    },
    "filters": {"discreet": {"()": "confirmhub.logs.Discreet"}},
    "handlers": {
        "stderr": {
            "class": "logging.StreamHandler",
            "formatter": env.choice("LOG_FORMAT", ("line", "json")),
            "filters": ["discreet"],
        }
    },
    "root": {"handlers": ["stderr"], "level": "INFO"},
    "loggers": {
        "oauthlib": {"level": "WARNING"},  # its debug lines print tokens
        "axes": {"level": "WARNING"},
        "mcp.server.mcpserver.server": {"level": "WARNING"},  # below it are tools' answers, with arguments
    },
}
