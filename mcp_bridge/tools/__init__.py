"""The tools that the bridge offers to hosts."""
