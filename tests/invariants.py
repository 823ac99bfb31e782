"""What confirmhub promises, each with where the promise comes from.

A test that proves one says so with `@proves("...")`; test_ground_rules.py holds the list and the tests to
each other.
"""

from __future__ import annotations

from collections.abc import Callable

INVARIANTS = {
    "redeem:once": "Two redemptions of one confirmation never both succeed. (MCP 2026-07-28, MRTR)",
    "redeem:exact": "A yes to one action redeems no other. (ours; PSD2 RTS art. 5)",
    "redeem:own": "Only the principal who asked redeems. (MCP 2026-07-28, elicitation)",
    "redeem:in-time": "Nothing is redeemed after its deadline, whether or not a sweeper ran. (ours)",
    "redeem:not-halted": "Nothing is redeemed that a stop in force covers. (ours)",
    "redeem:exactly-once": "In one database, the yes, the effect and the outcome are one. (ours)",
    "redeem:durable": "What is redeemed is committed before anything acts on it. (ours)",
    "redeem:replay": "A lost answer is no second effect: the same key gets the same receipt. (ours)",
    "decide:own": "Nobody but the acting user decides, and to others it does not exist. (MCP, elicitation)",
    "decide:assured": "A host's word counts where the policy takes it, and nowhere else. (ours)",
    "decide:kept": "A decision that was acknowledged is never lost. (ours)",
    "decide:seen": "A decision counts for what was on the screen alone. (consent, J3a)",
    "log:append-only": "An event is never changed or removed. (ours)",
    "log:tamper-evident": "One changed byte in the log is found. (ours; NIST SP 800-53 AU-10)",
    "log:stops": "Each use of the kill switch is logged, and a stop that was changed is found. (ours; AU-10)",
    "log:chained": "Each event holds the hash of the one before. (ours)",
    "display:distinct": "Two different values are never one text on the screen. (consent, P1)",
    "display:nothing-hidden": "No character that is drawn as nothing is shown as it is. (consent, P2)",
    "display:twins-told": "Of two values that look alike and hold no token, one is told of. (consent, P7)",
    "display:calm": "Ordinary text of any script is shown as it is, and not warned of. (consent, P8)",
    "rows:asked-is-fixed": "What was asked never changes, whoever writes. (ours)",
    "rows:edges": "No row moves but along the edges, whoever writes. (ours)",
    "notices:at-least-once": "Every notice that was committed arrives, whatever dies on the way. (ours)",
    "notices:apart": "A destination that fails holds up no other. (ours)",
    "notices:given-up-seen": "A notice that is given up is an event on its row. (ours)",
}


def proves[F: Callable[..., object]](name: str) -> Callable[[F], F]:
    """Mark a test as proof of an invariant.

    Raises:
        KeyError: There is no such invariant.
    """
    INVARIANTS[name]
    return lambda test: test
