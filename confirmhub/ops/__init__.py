"""Running the service: the state folder, the embedded Postgres, the supervisor, and health."""
