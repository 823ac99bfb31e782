"""How often a caller may ask people something, and what the answer's headers say of that."""

from __future__ import annotations

from rest_framework.exceptions import Throttled

from confirmhub.confirmations.principals import Principal
from confirmhub.oauth import throttle


def spend(*, who: Principal) -> dict[str, str]:
    """Count one more question, and return the headers that say what is left.

    They are those of draft-ietf-httpapi-ratelimit-headers-10.

    Raises:
        Throttled: There were as many within a minute as may be.
    """
    spent = throttle.spend_asking(who=who)
    if spent.wait:
        raise Throttled(wait=spent.wait)
    seconds = int(throttle.ASKING.within.total_seconds())
    return {
        "RateLimit-Policy": f'"create";q={throttle.ASKING.count};w={seconds}',
        "RateLimit": f'"create";r={spent.remaining};t={spent.resets_in}',
    }
