"""The models of the authorization server, swapped from the first migration on."""

import uuid

import django.db.models.deletion
import django.db.models.lookups
import oauth2_provider.generators
import oauth2_provider.models
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Tally",
            fields=[
                ("key", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("count", models.PositiveIntegerField()),
                ("ends_at", models.DateTimeField(db_index=True)),
            ],
        ),
        migrations.CreateModel(
            name="Client",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "client_id",
                    models.CharField(
                        db_index=True,
                        default=oauth2_provider.generators.generate_client_id,
                        max_length=255,
                        unique=True,
                        verbose_name="client ID",
                    ),
                ),
                (
                    "redirect_uris",
                    models.TextField(
                        blank=True,
                        help_text="Allowed URIs list, space separated",
                        verbose_name="redirect URIs",
                    ),
                ),
                (
                    "post_logout_redirect_uris",
                    models.TextField(
                        blank=True,
                        default="",
                        help_text="Allowed Post Logout URIs list, space separated",
                        verbose_name="post logout redirect URIs",
                    ),
                ),
                (
                    "client_type",
                    models.CharField(
                        choices=[("confidential", "Confidential"), ("public", "Public")],
                        max_length=32,
                        verbose_name="client type",
                    ),
                ),
                (
                    "authorization_grant_type",
                    models.CharField(
                        choices=[
                            ("authorization-code", "Authorization code"),
                            ("urn:ietf:params:oauth:grant-type:device_code", "Device Code"),
                            ("implicit", "Implicit"),
                            ("password", "Resource owner password-based"),
                            ("client-credentials", "Client credentials"),
                            ("openid-hybrid", "OpenID connect hybrid"),
                        ],
                        max_length=44,
                        verbose_name="authorization grant type",
                    ),
                ),
                ("name", models.CharField(blank=True, max_length=255, verbose_name="name")),
                ("skip_authorization", models.BooleanField(default=False, verbose_name="skip authorization")),
                ("created", models.DateTimeField(auto_now_add=True, verbose_name="created")),
                ("updated", models.DateTimeField(auto_now=True, verbose_name="updated")),
                (
                    "algorithm",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("", "No OIDC support"),
                            ("RS256", "RSA with SHA-2 256"),
                            ("HS256", "HMAC with SHA-2 256"),
                        ],
                        default="",
                        max_length=5,
                        verbose_name="algorithm",
                    ),
                ),
                (
                    "allowed_origins",
                    models.TextField(
                        blank=True,
                        default="",
                        help_text="Allowed origins list to enable CORS, space separated",
                        verbose_name="allowed origins",
                    ),
                ),
                (
                    "registration_source",
                    models.CharField(
                        choices=[
                            ("manual", "Manual"),
                            ("dcr", "Dynamic Client Registration"),
                            ("cimd", "Client ID Metadata Document"),
                        ],
                        default="manual",
                        help_text="How this application was registered (manual, DCR per RFC 7591, or CIMD)",
                        max_length=32,
                        verbose_name="registration source",
                    ),
                ),
                (
                    "cimd_expires_at",
                    models.DateTimeField(
                        blank=True,
                        default=None,
                        help_text="When the cached Client ID Metadata Document should be re-fetched",
                        null=True,
                        verbose_name="CIMD expires at",
                    ),
                ),
                ("client_secret", models.CharField(blank=True, default="", editable=False, max_length=80)),
                ("audience", models.CharField(blank=True, default="", max_length=255)),
                ("service_scope", models.CharField(blank=True, default="", max_length=255)),
                (
                    "blocked",
                    models.BooleanField(
                        default=False,
                        help_text="It gets no tokens any more, and those that it has do not work.",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="%(app_label)s_%(class)s",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="user",
                    ),
                ),
            ],
            options={
                "abstract": False,
                "verbose_name": "program",
            },
        ),
        migrations.CreateModel(
            name="Service",
            fields=[],
            options={
                "proxy": True,
                "indexes": [],
                "constraints": [],
            },
            bases=("oauth.client",),
        ),
        migrations.CreateModel(
            name="Code",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("code", models.CharField(max_length=255, unique=True, verbose_name="code")),
                ("expires", models.DateTimeField(verbose_name="expires")),
                ("redirect_uri", models.TextField(verbose_name="redirect URI")),
                ("scope", models.TextField(blank=True, verbose_name="scope")),
                ("created", models.DateTimeField(auto_now_add=True, verbose_name="created")),
                ("updated", models.DateTimeField(auto_now=True, verbose_name="updated")),
                (
                    "code_challenge",
                    models.CharField(blank=True, default="", max_length=128, verbose_name="code challenge"),
                ),
                (
                    "code_challenge_method",
                    models.CharField(
                        blank=True,
                        choices=[("plain", "plain"), ("S256", "S256")],
                        default="",
                        max_length=10,
                        verbose_name="code challenge method",
                    ),
                ),
                ("nonce", models.CharField(blank=True, default="", max_length=255, verbose_name="nonce")),
                ("claims", models.TextField(blank=True, verbose_name="claims")),
                (
                    "resource",
                    oauth2_provider.models.ResourceJSONField(
                        blank=True, default=list, verbose_name="resource"
                    ),
                ),
                ("redeemed_at", models.DateTimeField(null=True)),
                ("family", models.UUIDField(null=True)),
                (
                    "application",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        to=settings.OAUTH2_PROVIDER_APPLICATION_MODEL,
                        verbose_name="application",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="%(app_label)s_%(class)s",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="user",
                    ),
                ),
            ],
            options={
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="IDToken",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "jti",
                    models.UUIDField(
                        default=uuid.uuid4, editable=False, unique=True, verbose_name="JWT Token ID"
                    ),
                ),
                ("expires", models.DateTimeField(verbose_name="expires")),
                ("scope", models.TextField(blank=True, verbose_name="scope")),
                ("created", models.DateTimeField(auto_now_add=True, verbose_name="created")),
                ("updated", models.DateTimeField(auto_now=True, verbose_name="updated")),
                (
                    "application",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        to=settings.OAUTH2_PROVIDER_APPLICATION_MODEL,
                        verbose_name="application",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="%(app_label)s_%(class)s",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="user",
                    ),
                ),
            ],
            options={
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="AccessToken",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("token", models.TextField(verbose_name="token")),
                (
                    "token_checksum",
                    oauth2_provider.models.TokenChecksumField(
                        db_index=True, max_length=64, unique=True, verbose_name="token checksum"
                    ),
                ),
                ("expires", models.DateTimeField(verbose_name="expires")),
                ("scope", models.TextField(blank=True, verbose_name="scope")),
                (
                    "resource",
                    oauth2_provider.models.ResourceJSONField(
                        blank=True, default=list, verbose_name="resource"
                    ),
                ),
                ("created", models.DateTimeField(auto_now_add=True, verbose_name="created")),
                ("updated", models.DateTimeField(auto_now=True, verbose_name="updated")),
                ("is_service", models.BooleanField(default=False)),
                ("used_at", models.DateTimeField(null=True)),
                (
                    "user",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="%(app_label)s_%(class)s",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="user",
                    ),
                ),
                (
                    "application",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        to=settings.OAUTH2_PROVIDER_APPLICATION_MODEL,
                        verbose_name="application",
                    ),
                ),
                (
                    "id_token",
                    models.OneToOneField(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="access_token",
                        to=settings.OAUTH2_PROVIDER_ID_TOKEN_MODEL,
                        verbose_name="ID token",
                    ),
                ),
            ],
            options={
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="RefreshToken",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("token", models.TextField(verbose_name="token")),
                (
                    "token_checksum",
                    oauth2_provider.models.TokenChecksumField(max_length=64, verbose_name="token checksum"),
                ),
                (
                    "token_family",
                    models.UUIDField(blank=True, editable=False, null=True, verbose_name="token family"),
                ),
                (
                    "resource",
                    oauth2_provider.models.ResourceJSONField(
                        blank=True, default=list, verbose_name="resource"
                    ),
                ),
                ("created", models.DateTimeField(auto_now_add=True, verbose_name="created")),
                ("updated", models.DateTimeField(auto_now=True, verbose_name="updated")),
                ("revoked", models.DateTimeField(null=True, verbose_name="revoked")),
                ("grant_scope", models.TextField(blank=True, default="")),
                ("stepup_scope", models.TextField(blank=True, default="")),
                ("stepup_at", models.DateTimeField(null=True)),
                (
                    "access_token",
                    models.OneToOneField(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="refresh_token",
                        to=settings.OAUTH2_PROVIDER_ACCESS_TOKEN_MODEL,
                        verbose_name="access token",
                    ),
                ),
                (
                    "application",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        to=settings.OAUTH2_PROVIDER_APPLICATION_MODEL,
                        verbose_name="application",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="%(app_label)s_%(class)s",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="user",
                    ),
                ),
            ],
            options={
                "abstract": False,
            },
        ),
        migrations.AddField(
            model_name="accesstoken",
            name="source_refresh_token",
            field=models.OneToOneField(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="refreshed_access_token",
                to=settings.OAUTH2_PROVIDER_REFRESH_TOKEN_MODEL,
                verbose_name="source refresh token",
            ),
        ),
        migrations.AddConstraint(
            model_name="client",
            constraint=models.CheckConstraint(
                condition=models.Q(("skip_authorization", False)), name="client_never_skips_consent"
            ),
        ),
        migrations.AddConstraint(
            model_name="client",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("audience", ""),
                        ("authorization_grant_type", "authorization-code"),
                        ("service_scope", ""),
                    ),
                    models.Q(
                        ("audience__gt", ""),
                        ("authorization_grant_type", "client-credentials"),
                        ("client_secret__gt", ""),
                        ("client_type", "confidential"),
                        ("redirect_uris", ""),
                        ("registration_source", "manual"),
                        ("service_scope__gt", ""),
                    ),
                    _connector="OR",
                ),
                name="client_is_host_or_service",
            ),
        ),
        migrations.AddConstraint(
            model_name="client",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("client_secret", ""),
                    ("client_secret__regex", "^sha256\\$[0-9a-f]{64}$"),
                    _connector="OR",
                ),
                name="client_secret_not_in_clear",
            ),
        ),
        migrations.AddConstraint(
            model_name="code",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("family__isnull", True), ("redeemed_at__isnull", True)),
                    models.Q(("family__isnull", False), ("redeemed_at__isnull", False)),
                    _connector="OR",
                ),
                name="code_family_iff_redeemed",
            ),
        ),
        migrations.AddConstraint(
            model_name="code",
            constraint=models.CheckConstraint(
                condition=django.db.models.lookups.Exact(
                    models.Func(
                        models.F("resource"),
                        function="jsonb_array_length",
                        output_field=models.IntegerField(),
                    ),
                    1,
                ),
                name="code_has_one_resource",
            ),
        ),
        migrations.AddIndex(
            model_name="refreshtoken",
            index=models.Index(fields=["token_family"], name="oauth_refre_token_f_9588eb_idx"),
        ),
        migrations.AddConstraint(
            model_name="refreshtoken",
            constraint=models.CheckConstraint(
                condition=django.db.models.lookups.Exact(
                    models.Func(
                        models.F("resource"),
                        function="jsonb_array_length",
                        output_field=models.IntegerField(),
                    ),
                    1,
                ),
                name="refresh_token_has_one_resource",
            ),
        ),
        migrations.AddConstraint(
            model_name="refreshtoken",
            constraint=models.CheckConstraint(
                condition=models.Q(("token", "")), name="refresh_token_not_in_clear"
            ),
        ),
        migrations.AlterUniqueTogether(
            name="refreshtoken",
            unique_together={("token_checksum", "revoked")},
        ),
        migrations.AddConstraint(
            model_name="accesstoken",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("application__isnull", False),
                    models.Q(
                        models.Q(("is_service", False), ("user__isnull", False)),
                        models.Q(
                            ("is_service", True),
                            ("source_refresh_token__isnull", True),
                            ("user__isnull", True),
                        ),
                        _connector="OR",
                    ),
                ),
                name="access_token_has_a_person_or_is_a_services",
            ),
        ),
        migrations.AddConstraint(
            model_name="accesstoken",
            constraint=models.CheckConstraint(
                condition=django.db.models.lookups.Exact(
                    models.Func(
                        models.F("resource"),
                        function="jsonb_array_length",
                        output_field=models.IntegerField(),
                    ),
                    1,
                ),
                name="access_token_has_one_resource",
            ),
        ),
        migrations.AddConstraint(
            model_name="accesstoken",
            constraint=models.CheckConstraint(
                condition=models.Q(("token", "")), name="access_token_not_in_clear"
            ),
        ),
    ]
