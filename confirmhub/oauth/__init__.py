"""Our side of django-oauth-toolkit: the authorization server that MCP hosts sign in to."""
