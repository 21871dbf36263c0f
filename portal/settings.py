"""Django's settings and the portal's own, as ``env`` reads them: paths, database, Celery, CSP."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from csp.constants import NONE, SELF

from portal.env import LOG_LEVELS, Reader, SettingsError, gather
from portal.logs import logging_config
from portal.machine import available, derive_key, keep_secret

BASE_DIR = Path(__file__).resolve().parent.parent


def _secret_key(reader: Reader, folder: Path) -> str:
    given = reader.long_secret("GATEHOUSE_SECRET_KEY", shortest=32)
    if given:
        return given
    try:
        return keep_secret(folder / "secret-key")
    except OSError as error:
        hint = "set it, or set GATEHOUSE_VAR to a writable folder"
        reader.complain("GATEHOUSE_SECRET_KEY", f"cannot be created ({error.strerror})", hint)
        return "unused"


try:
    env = Reader(gather(os.environ, BASE_DIR / ".env"))
except SettingsError as error:
    # Every process reads this module first: a wrong setting prints these lines and no traceback.
    raise SystemExit(str(error)) from None
env.text("GATEHOUSE_ENV_FILE")  # read by gather; named here so that it counts as known
env.text("GATEHOUSE_UID")  # read by docker-compose.yml, from the same .env

# Paths, addresses and processes
GATEHOUSE_VAR = (BASE_DIR / env.text("GATEHOUSE_VAR", "var")).resolve()
GATEHOUSE_LISTEN_HOST = env.text("GATEHOUSE_LISTEN_HOST", "127.0.0.1")
GATEHOUSE_LISTEN_PORT = env.port("GATEHOUSE_LISTEN_PORT", 8000)
GATEHOUSE_PROBE_PORT = env.port("GATEHOUSE_PROBE_PORT", 0)  # 0: no port of their own
GATEHOUSE_WEB_WORKERS = env.integer(
    "GATEHOUSE_WEB_WORKERS", min(64, available()), lowest=1, highest=64
)
# For pages and unusual reviews; the event loop answers all other reviews itself.
GATEHOUSE_WEB_THREADS = env.integer("GATEHOUSE_WEB_THREADS", 16, lowest=1, highest=256)
GATEHOUSE_DRAIN_SECONDS = env.integer("GATEHOUSE_DRAIN_SECONDS", 5, lowest=0, highest=300)
GATEHOUSE_TLS_CERTIFICATE = env.file("GATEHOUSE_TLS_CERTIFICATE", BASE_DIR)
GATEHOUSE_TLS_KEY = env.file("GATEHOUSE_TLS_KEY", BASE_DIR)
GATEHOUSE_TLS_CLIENT_CA = env.file("GATEHOUSE_TLS_CLIENT_CA", BASE_DIR)
if bool(GATEHOUSE_TLS_CERTIFICATE) is not bool(GATEHOUSE_TLS_KEY):
    env.complain("GATEHOUSE_TLS_CERTIFICATE", "and GATEHOUSE_TLS_KEY go together", "set both")
if GATEHOUSE_TLS_CLIENT_CA and not GATEHOUSE_TLS_CERTIFICATE:
    env.complain("GATEHOUSE_TLS_CLIENT_CA", "needs TLS", "set GATEHOUSE_TLS_CERTIFICATE, too")
_scheme = "https" if GATEHOUSE_TLS_CERTIFICATE else "http"
GATEHOUSE_EXTERNAL_URL = env.web_address(
    "GATEHOUSE_EXTERNAL_URL", f"{_scheme}://127.0.0.1:{GATEHOUSE_LISTEN_PORT}"
)
GATEHOUSE_DOCS_URL = env.link("GATEHOUSE_DOCS_URL")
GATEHOUSE_BEHIND_PROXY = env.hops("GATEHOUSE_BEHIND_PROXY")
_external = urlsplit(GATEHOUSE_EXTERNAL_URL)
# Pages are served over plain HTTP only if the address is set so, as ``make run`` does.
_is_plain = _external.scheme == "http" and bool(env.text("GATEHOUSE_EXTERNAL_URL"))

# The queue of the writer in each process
GATEHOUSE_QUEUE_LIMIT = env.integer("GATEHOUSE_QUEUE_LIMIT", 1024, lowest=1, highest=100_000)
GATEHOUSE_BATCH_LIMIT = env.integer("GATEHOUSE_BATCH_LIMIT", 256, lowest=1, highest=4096)
GATEHOUSE_RECORD_MUTATIONS = env.choice("GATEHOUSE_RECORD_MUTATIONS", "durable", "queued")

# Retention of the record in days (0: for ever), and the folder of exports made before deletion
GATEHOUSE_RETENTION_ALLOWED_DAYS = env.integer(
    "GATEHOUSE_RETENTION_ALLOWED_DAYS", 30, lowest=0, highest=36500
)
GATEHOUSE_RETENTION_DENIED_DAYS = env.integer(
    "GATEHOUSE_RETENTION_DENIED_DAYS", 365, lowest=0, highest=36500
)
GATEHOUSE_EXPORT_FOLDER = (
    BASE_DIR / env.text("GATEHOUSE_EXPORT_FOLDER", str(GATEHOUSE_VAR / "audit-exports"))
).resolve()

# Networks of clusters beside public addresses; link-local ones and cloud metadata stay forbidden
GATEHOUSE_CLUSTER_ADDRESSES = env.networks(
    "GATEHOUSE_CLUSTER_ADDRESSES", "10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,100.64.0.0/10,fc00::/7"
)

GATEHOUSE_SYNC_FULL_PASS_MINUTES = env.integer(
    "GATEHOUSE_SYNC_FULL_PASS_MINUTES", 10, lowest=1, highest=1440
)
# Saving asks for confirmation if more than this share of running pods could not restart
GATEHOUSE_API_REQUIRE_IF_MATCH = env.boolean("GATEHOUSE_API_REQUIRE_IF_MATCH", default=False)
GATEHOUSE_CONFIRM_REFUSED_PERCENT = env.integer(
    "GATEHOUSE_CONFIRM_REFUSED_PERCENT", 20, lowest=0, highest=100
)
# Tasks that a worker runs at once; all but one may be watches, so that other work goes on
GATEHOUSE_WORKER_TASKS = env.integer("GATEHOUSE_WORKER_TASKS", 4, lowest=2, highest=64)

# Secrets
SECRET_KEY = _secret_key(env, GATEHOUSE_VAR)
GATEHOUSE_KEY_PEPPER = env.secret("GATEHOUSE_KEY_PEPPER") or derive_key(
    SECRET_KEY, "webhook credentials"
)
GATEHOUSE_METRICS_TOKEN = env.secret("GATEHOUSE_METRICS_TOKEN")
# Cluster credentials: sealed with the public key, opened with the private key by the worker alone.
GATEHOUSE_SEAL_PUBLIC_KEYS_FILE = BASE_DIR / env.text(
    "GATEHOUSE_SEAL_PUBLIC_KEYS_FILE", str(GATEHOUSE_VAR / "seal" / "public-keys.pem")
)
GATEHOUSE_SEAL_PRIVATE_KEYS_FILE = BASE_DIR / env.text(
    "GATEHOUSE_SEAL_PRIVATE_KEYS_FILE", str(GATEHOUSE_VAR / "seal" / "private-keys.pem")
)
GATEHOUSE_ADMIN_USER = env.text("GATEHOUSE_ADMIN_USER", "admin")
GATEHOUSE_ADMIN_PASSWORD = env.long_secret("GATEHOUSE_ADMIN_PASSWORD", shortest=12)

# Hosts and addresses
DEBUG = env.boolean("GATEHOUSE_DEBUG", default=False)
ALLOWED_HOSTS = sorted(
    {_external.hostname or "127.0.0.1", "127.0.0.1", "localhost", "[::1]"}
    | set(env.words("GATEHOUSE_ALLOWED_HOSTS"))
)
CSRF_TRUSTED_ORIGINS = [GATEHOUSE_EXTERNAL_URL]

ROOT_URLCONF = "portal.urls"
WSGI_APPLICATION = "portal.serving.wsgi.application"
INSTALLED_APPS = [
    "portal",  # before the others, so that its templates win
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "knox",
    "django_filters",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "csp",
    "policies",
    "sync",
    "admission",
]
MIDDLEWARE = [
    "portal.middleware.RequestIdMiddleware",
    "portal.middleware.ProbeMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    # Below probes and static files, which are compressed already, and above all that reads content.
    "django.middleware.gzip.GZipMiddleware",
    "csp.middleware.CSPMiddleware",
    "portal.middleware.NoStoreMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "portal.middleware.ThrottledMiddleware",
    "portal.middleware.PastMiddleware",
]
# For reviews that the web server answers; Django's test client goes through the list above.
ADMISSION_MIDDLEWARE = ["portal.middleware.RequestIdMiddleware"]
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
            "libraries": {"pages": "portal.pages.template_tags"},
        },
    }
]

# Database: SQLite under var/ by default, PostgreSQL by address
_database = env.database(
    "GATEHOUSE_DATABASE_URL",
    f"sqlite:///{quote(str(GATEHOUSE_VAR / 'gatehouse.sqlite3'))}",
    env.secret("GATEHOUSE_DATABASE_PASSWORD"),
)
_SQLITE: dict[str, Any] = {
    "ENGINE": "django.db.backends.sqlite3",
    "NAME": BASE_DIR / _database.name,
    "OPTIONS": {
        # Take write locks at the start: SQLite lets no reader wait that becomes a writer.
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;",
    },
}
_POSTGRESQL: dict[str, Any] = {
    "ENGINE": "django.db.backends.postgresql",
    "NAME": _database.name,
    "USER": _database.user,
    "PASSWORD": _database.password,
    "HOST": _database.host,
    "PORT": _database.port,
    "CONN_HEALTH_CHECKS": True,
    "OPTIONS": {
        # For pages, writer and policies; each task of a worker may use two, one for the heartbeat.
        "pool": {
            "min_size": 1,
            "max_size": max(min(GATEHOUSE_WEB_THREADS, 8), 2 * GATEHOUSE_WORKER_TASKS) + 2,
            "timeout": 4,
        },
        "connect_timeout": 3,
        "application_name": "gatehouse",
        **_database.options,
        "options": "-c lock_timeout=4s -c idle_in_transaction_session_timeout=60s "
        + _database.options.get("options", ""),
    },
}
DATABASES = {"default": _SQLITE if _database.engine == "sqlite3" else _POSTGRESQL}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# Background work: files under var/ by default, Redis by address
CELERY_BROKER_URL = env.broker(
    "GATEHOUSE_BROKER_URL", "filesystem://", env.secret("GATEHOUSE_BROKER_PASSWORD")
)
GATEHOUSE_BROKER_FOLDER = GATEHOUSE_VAR / "broker"
CELERY_BROKER_TRANSPORT = (
    "portal.file_broker:FileTransport" if CELERY_BROKER_URL == "filesystem://" else None
)
CELERY_BROKER_TRANSPORT_OPTIONS: dict[str, Any] = (
    {
        "data_folder_in": str(GATEHOUSE_BROKER_FOLDER / "queue"),
        "data_folder_out": str(GATEHOUSE_BROKER_FOLDER / "queue"),
        "control_folder": str(GATEHOUSE_BROKER_FOLDER / "control"),
    }
    if CELERY_BROKER_URL == "filesystem://"
    else {"visibility_timeout": 600}
)
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_TASK_SOFT_TIME_LIMIT = 120
CELERY_TASK_TIME_LIMIT = 150
CELERY_WORKER_CONCURRENCY = GATEHOUSE_WORKER_TASKS
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_TIMEZONE = "UTC"

# People: sessions for pages, tokens for programs; permissions by role bindings or Django's own
AUTHENTICATION_BACKENDS = [
    "portal.auth.sign_in.ThrottledBackend",
    "django.contrib.auth.backends.ModelBackend",
    "policies.roles.RoleBackend",
]
AUTH_PASSWORD_VALIDATORS = [
    *(
        {"NAME": f"django.contrib.auth.password_validation.{name}"}
        for name in (
            "UserAttributeSimilarityValidator",
            "MinimumLengthValidator",
            "CommonPasswordValidator",
            "NumericPasswordValidator",
        )
    ),
    {"NAME": "portal.auth.accounts.EndTokens"},
]
PASSWORD_HASHERS = [
    "portal.auth.sign_in.Argon2",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "login"
SESSION_COOKIE_AGE = 12 * 60 * 60
# How long the link of an invitation can be used
PASSWORD_RESET_TIMEOUT = 3 * 24 * 60 * 60
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "policies.tokens.authentication.ScopedTokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_FILTER_BACKENDS": ["django_filters.rest_framework.DjangoFilterBackend"],
    "NUM_PROXIES": GATEHOUSE_BEHIND_PROXY,
    "DEFAULT_METADATA_CLASS": None,  # OPTIONS is no method of any address: the schema tells more
    "DEFAULT_SCHEMA_CLASS": "policies.rest.Schema",
    "EXCEPTION_HANDLER": "policies.problem_details.handle",
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
}
REST_KNOX = {"TOKEN_LIMIT_PER_USER": 50}
KNOX_TOKEN_MODEL = "policies.ApiToken"  # noqa: S105  the name of a table
# The library would still create its own table of tokens, which nothing reads.
MIGRATION_MODULES = {"knox": None}
SPECTACULAR_SETTINGS = {
    "TITLE": "Gatehouse",
    "DESCRIPTION": "Policies, decisions and revisions of the admission portal.",
    "VERSION": "v1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "COMPONENT_SPLIT_REQUEST": True,
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "policies.openapi.add_summaries",
    ],
    "SWAGGER_UI_SETTINGS": {"deepLinking": True, "docExpansion": "list", "filter": True},
    "ENUM_NAME_OVERRIDES": {
        "CoreVersionEnum": ["v1"],
        "PolicyVersionEnum": ["policy.gatehouse.dev/v1alpha1"],
        "SchedulingVersionEnum": ["scheduling.k8s.io/v1"],
        "ApprovingRoleEnum": "policies.change_sets.approvals.terms.APPROVING_ROLES",
        "RoleEnum": "policies.models.RoleBinding.Role",
        "ChangeStateEnum": "policies.change_sets.states.STATES",
        "ChangeStepEnum": "policies.change_sets.states.STEPS",
        "EnforcementEnum": "policies.object_rules.MODES",
        "ReplayStateEnum": "admission.models.Replay.State",
        "ReplayedQuotaStateEnum": "admission.replay.journal.QUOTA_STATES",
        **{
            f"{kind}KindEnum": [kind]
            for kind in (
                "LimitRange",
                "MetadataPolicy",
                "Namespace",
                "NamespaceClass",
                "PolicyTest",
                "PriorityClass",
                "ResourceQuota",
            )
        },
        "ExpectedVerdictEnum": ["allow", "deny"],
        "VerdictEnum": "admission.models.columns.AnswerKind",
        "OperationEnum": ["CREATE", "UPDATE", "DELETE", "CONNECT"],
        "TestedOperationEnum": ["CREATE", "UPDATE"],
        "ReasonEnum": "engine.kept_tests.REASONS",
        "NamespacePhaseEnum": ["Active", "Terminating"],
        "ReviewPhaseEnum": ["mutate", "validate"],
        "ScopeEnum": "engine.resource_quota.ALLOWED_NAMES",
        "ConnectionStateEnum": "sync.models.ClusterConnection.State",
        "ConnectionStandingEnum": "sync.inventory.cluster_states.CONNECTION_STATES",
        "WebhookStateEnum": "sync.inventory.cluster_states.WEBHOOK_STATES",
        "SyncRunStateEnum": "sync.models.SyncRun.State",
        "SyncRunModeEnum": "sync.models.SyncRun.Mode",
        "StepOutcomeEnum": "policies.openapi.OUTCOMES",
        "PolicyKindEnum": "sync.values.WRITTEN_KINDS",
        "SyncedObjectStateEnum": "sync.models.SyncedObject.State",
    },
}

# Browsers: only our own files, no inline script or style, HTTPS unless the address is plain HTTP
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        **{name: [SELF] for name in ("script-src", "style-src", "font-src", "connect-src")},
        "img-src": [SELF, "data:"],
        "form-action": [SELF],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
    }
}
SECURE_SSL_REDIRECT = not _is_plain
SECURE_HSTS_SECONDS = 0 if _is_plain else 365 * 24 * 60 * 60
SECURE_HSTS_INCLUDE_SUBDOMAINS = not _is_plain
SECURE_HSTS_PRELOAD = not _is_plain
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if GATEHOUSE_BEHIND_PROXY else None
SECURE_REFERRER_POLICY = "same-origin"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = not _is_plain
CSRF_COOKIE_HTTPONLY = True
_host = "" if _is_plain else "__Host-"  # browsers accept such a cookie from this host only
SESSION_COOKIE_NAME, CSRF_COOKIE_NAME = f"{_host}sessionid", f"{_host}csrftoken"
X_FRAME_OPTIONS = "DENY"
# The admission endpoint has a limit of its own, and answers reviews that exceed it.
DATA_UPLOAD_MAX_MEMORY_SIZE = 9 * 1024 * 1024
DATA_UPLOAD_MAX_NUMBER_FIELDS = 5000

# Files
STATIC_URL = "static/"
STATIC_ROOT = BASE_DIR / "static-root"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}

# Language and time
LANGUAGE_CODE = "en-gb"
USE_I18N = False
USE_TZ = True
TIME_ZONE = "UTC"

# Logs: one line for each record on standard error, with the request's id
GATEHOUSE_LOG_LEVEL = env.choice("GATEHOUSE_LOG_LEVEL", *LOG_LEVELS, default="INFO")
GATEHOUSE_LOG_FORMAT = env.choice("GATEHOUSE_LOG_FORMAT", "text", "json")
GATEHOUSE_ACCESS_LOG = env.boolean("GATEHOUSE_ACCESS_LOG", default=False)
LOGGING = logging_config(GATEHOUSE_LOG_LEVEL, GATEHOUSE_LOG_FORMAT)

try:
    env.finish()
except SettingsError as error:
    raise SystemExit(str(error)) from None
