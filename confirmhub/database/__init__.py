"""The database engine of the settings."""
