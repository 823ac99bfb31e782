"""One process that asks, decides and redeems, and writes each answer down before it goes on.

    python -m tests.faults.worker ANSWERS CLIENT USER FIRST LAST SEED

It is killed without warning, and its database goes away under it; it carries on.
"""

from __future__ import annotations

import os
import random
import sys
import time
import uuid
from collections.abc import Callable

import django

BUSY = 0.05  # seconds before a call is made again that the database did not answer


def main() -> None:
    answers, client, user_id, first, last, seed = sys.argv[1:]
    django.setup()

    from django.contrib.auth.models import User
    from django.db import DatabaseError, InterfaceError, connection

    from confirmhub.confirmations import errors, ledger
    from confirmhub.confirmations.actions import Action
    from confirmhub.confirmations.principals import Principal
    from confirmhub.confirmations.states import Verdict

    log = os.open(answers, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def say(*words: object) -> None:
        os.write(log, (" ".join(map(str, words)) + "\n").encode())

    def insist[R](call: Callable[[], R]) -> R:
        """Call until there is an answer. A call whose answer was lost is made again, as it was."""
        while True:
            try:
                return call()
            except (errors.Busy, DatabaseError, InterfaceError):
                connection.close()
                time.sleep(BUSY)

    def once(number: int) -> None:
        action = Action(audience="https://bank.example", name="pay", arguments={"number": number})
        asked = insist(
            lambda: ledger.request(requester=requester, action=action, idempotency_key=f"number-{number}")
        )
        verdict = Verdict.DENY if number % 10 == 0 else Verdict.APPROVE
        insist(
            lambda: ledger.decide(
                confirmation_id=asked.id,
                approver=approver,
                verdict=verdict,
                digest_shown=bytes(asked.view_digest).hex(),
            )
        )
        say("decided", asked.id, verdict)
        key = uuid.uuid4().hex
        say("tries", asked.id, key)
        try:
            receipt = insist(
                lambda: ledger.redeem(
                    confirmation_id=asked.id, requester=requester, action=action, redemption_key=key
                )
            )
        except (errors.AlreadyRedeemed, errors.Denied) as refusal:
            say("refused", asked.id, refusal.code)
        else:
            say("receipt", asked.id, key, "replayed" if receipt.replayed else "new")

    requester = Principal(client_id=client, subject=user_id)
    approver = insist(lambda: User.objects.get(pk=int(user_id)))
    numbers = list(range(int(first), int(last)))
    random.Random(seed).shuffle(numbers)
    for number in numbers:
        once(number)
    say("done")


if __name__ == "__main__":
    main()
