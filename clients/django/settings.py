"""Settings of Django's test suite. The test databases are there before (--keepdb): they have the
side's access method.
"""

import os

DATABASES = {
    alias: {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": "django_" + alias,
        "USER": os.environ["PGUSER"],
        "HOST": os.environ["PGHOST"],
        "PORT": os.environ["PGPORT"],
        "TEST": {"NAME": "test_django_" + alias},
    }
    for alias in ("default", "other")
}
SECRET_KEY = "django_tests_secret_key"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
USE_TZ = False
TEST_RUNNER = "cases.Runner"
