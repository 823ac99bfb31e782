"""JSON over HTTP, for services and executors that do not speak MCP."""
