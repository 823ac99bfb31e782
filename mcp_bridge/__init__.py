"""The MCP server: one endpoint, /mcp, for every host. It translates; the ledger decides."""
