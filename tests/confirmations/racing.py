"""Sixteen processes redeem one confirmation at once; prints one line of what each got.

    python -m tests.confirmations.racing CONFIRMATION_ID CLIENT_ID SUBJECT

A program of its own, so that it can fork before it has any thread or connection.
"""

from __future__ import annotations

import multiprocessing
import sys
import uuid
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Barrier

import django

RACERS = 16


def race(arguments: list[str], start: Barrier, results: SimpleQueue[str]) -> None:
    from django.db import connection

    from confirmhub.confirmations.errors import ConfirmationError
    from confirmhub.confirmations.ledger import redeem
    from confirmhub.confirmations.principals import Principal
    from tests.factories import TRANSFER

    confirmation_id, client_id, subject = arguments
    connection.ensure_connection()
    start.wait(timeout=30)
    try:
        receipt = redeem(
            confirmation_id=uuid.UUID(confirmation_id),
            requester=Principal(client_id=client_id, subject=subject),
            action=TRANSFER,
            redemption_key=uuid.uuid4().hex,
        )
    except ConfirmationError as exc:
        results.put(exc.code)
    else:
        results.put("replayed" if receipt.replayed else "receipt")


def main() -> None:
    django.setup()
    fork = multiprocessing.get_context("fork")
    start, results = fork.Barrier(RACERS), fork.SimpleQueue()
    racers = [fork.Process(target=race, args=(sys.argv[1:], start, results)) for _ in range(RACERS)]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join(timeout=60)
    while not results.empty():
        sys.stdout.write(results.get() + "\n")


if __name__ == "__main__":
    main()
