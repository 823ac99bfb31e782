"""confirmhub: a person's consent to one exact action, asked, decided and spent once."""

__version__ = "0.1.0"  # as in pyproject.toml, which is not there where a package is installed
