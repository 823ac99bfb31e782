"""The Agent Approval Protocol (AAP), served: its published clients ask here, and people decide as ever.

An adapter with a version of its own. What the protocol has no room for stays as it is, and what would weaken
a confirmation is left out; docs/aap.md says what.
"""

VERSION = "0.1.0"
"""The version of this adapter."""
