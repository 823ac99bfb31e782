"""The protocol's operations: each makes one call of the core and translates. They block."""

from __future__ import annotations

import hashlib
import json
import uuid
from dataclasses import dataclass
from http import HTTPStatus

from django.db import transaction

from confirmhub.aap import wire
from confirmhub.aap.models import Submission
from confirmhub.aap.refusals import Conflict, Malformed, Refused, TooMany
from confirmhub.confirmations import errors, ledger, queries
from confirmhub.confirmations.actions import Action, Observation, framed
from confirmhub.confirmations.models import Confirmation
from confirmhub.confirmations.receipts import Receipt
from confirmhub.oauth import throttle
from confirmhub.oauth.bearer import Bearer

# Keeps these digests apart from any other, and the ledger's keys apart from those of the API.
_ATTEMPT = b"confirmhub/aap/attempt/v1"
_KEYS = "aap:"
MAX_KEY = 190  # characters


@dataclass(frozen=True, slots=True)
class Call:
    """What one request says, beside who makes it."""

    confirmation_id: uuid.UUID
    body: bytes
    key: str | None
    """Its Idempotency-Key."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A confirmation as the protocol has it."""

    resource: dict[str, object]
    status: HTTPStatus = HTTPStatus.OK


def create(caller: Bearer, call: Call) -> Reply:
    """Ask for the approval of one call, or get back what the same key asked for.

    Raises:
        Refused, ConfirmationError: It was not asked.
    """
    asked = wire.submission(call.body)
    key = _key(call)
    requester = caller.principal
    spent = throttle.spend_asking(who=requester)
    if spent.wait:
        raise TooMany("Too many questions within a short time. Ask again later.", retry_after=spent.wait)
    facts = (("Server", asked.server),) if asked.server else ()
    # The approval is for one attempt, and for the tool of one server: another is another action.
    attempt = framed(_ATTEMPT, asked.server.encode("utf-8", "surrogatepass"), key.encode("ascii"))
    action = Action(
        audience=caller.audience,
        name=asked.tool,
        arguments=asked.arguments,
        tool_digest=hashlib.sha256(attempt).digest(),
    )
    try:
        with transaction.atomic():
            made = ledger.request(
                requester=requester,
                action=action,
                summary=wire.summary(asked.reasoning),
                observation=Observation(facts=facts, fingerprint=""),
                idempotency_key=f"{_KEYS}{key}",
                decide_within=asked.timeout,
            )
            if made.is_new:
                Submission.objects.create(confirmation=made, rest=asked.rest)
    except errors.ActionDiffers as exc:
        raise _used_before() from exc
    confirmation, rest = _mine(caller, made.id)
    if rest != asked.rest:
        raise _used_before()
    status = HTTPStatus.CREATED if made.is_new else HTTPStatus.OK
    return Reply(wire.resource(confirmation, rest=rest), status)


def read(caller: Bearer, call: Call) -> Reply:
    """Where it stands now."""
    confirmation, rest = _mine(caller, call.confirmation_id)
    return Reply(wire.resource(confirmation, rest=rest))


def cancel(caller: Bearer, call: Call) -> Reply:
    """Take back a question that nobody has decided on."""
    _mine(caller, call.confirmation_id)
    _nothing_more(call)
    try:
        ledger.cancel(confirmation_id=call.confirmation_id, requester=caller.principal)
    except errors.Cancelled:
        pass  # again: the same answer
    except (
        errors.AlreadyDecided,
        errors.AlreadyRedeemed,
        errors.Denied,
        errors.Expired,
        errors.Revoked,
    ) as exc:
        raise Conflict("It was settled before.", code="already_terminal") from exc
    return read(caller, call)


def consume(caller: Bearer, call: Call) -> Reply:
    """Spend the yes, once, for the call that was submitted.

    The protocol does not send the call again. So the action is the one on record, for the audience that the
    caller's token has now.
    """
    confirmation, _ = _mine(caller, call.confirmation_id)
    _nothing_more(call)
    action = Action(
        audience=caller.audience,
        name=confirmation.action,
        arguments=json.loads(confirmation.arguments),
        tool_digest=bytes(confirmation.tool_digest),
    )
    try:
        ledger.redeem(
            confirmation_id=confirmation.id,
            requester=caller.principal,
            action=action,
            redemption_key=_key(call),
        )
    except errors.AlreadyRedeemed as exc:
        raise Conflict(str(exc), code="already_consumed") from exc
    except errors.Expired as exc:
        code = "not_approved" if confirmation.redeem_by is None else "approval_expired"
        raise Conflict(str(exc), code=code) from exc
    except (errors.Pending, errors.Denied, errors.Cancelled, errors.Revoked) as exc:
        raise Conflict(str(exc), code="not_approved") from exc
    return read(caller, call)


def report(caller: Bearer, call: Call) -> Reply:
    """Record what came of the call. The same report again changes nothing."""
    confirmation, _ = _mine(caller, call.confirmation_id)
    told = wire.report(call.body)
    if confirmation.redeemed_at is None or confirmation.redemption_key is None:
        raise Conflict("It was not consumed, so nothing came of it.", code="not_consumed")
    digest = bytes(confirmation.digest).hex()
    receipt = Receipt(
        confirmation.id, digest, confirmation.redemption_key, confirmation.redeemed_at, replayed=True
    )
    try:
        ledger.report_outcome(receipt=receipt, result=told.result, detail=told.note)
    except errors.AlreadyReported as exc:
        raise _reported_before() from exc
    confirmation, rest = _mine(caller, call.confirmation_id)
    # What is too long is kept cut, and cannot be compared any more.
    if len(told.note) <= ledger.MAX_DETAIL and confirmation.outcome.detail != told.note:
        raise _reported_before()
    return Reply(wire.resource(confirmation, rest=rest))


def manage_instances(_caller: Bearer, _call: Call) -> Reply:
    """Making credentials by a credential, which confirmhub leaves out.

    Raises:
        Refused: Always.
    """
    raise Refused(
        "No token makes or changes others here. An operator makes a service, whose tokens are credentials of"
        " this protocol.",
        status=HTTPStatus.FORBIDDEN,
        code="provisioning_not_offered",
    )


def _mine(caller: Bearer, confirmation_id: uuid.UUID) -> tuple[Confirmation, str]:
    """A confirmation that this caller asked for by this protocol.

    Raises:
        NotFound: No such one, or not theirs, or asked in another way.
    """
    rest = Submission.objects.filter(confirmation_id=confirmation_id).values_list("rest", flat=True).first()
    if rest is None:
        raise errors.NotFound
    found = queries.get_for_requester(confirmation_id=confirmation_id, requester=caller.principal)
    return found, rest


def _key(call: Call) -> str:
    if call.key is None:
        raise Malformed("Send an Idempotency-Key header.", code="missing_idempotency_key")
    if not (call.key.isascii() and call.key.isprintable() and " " not in call.key):
        raise Malformed("The Idempotency-Key is printable ASCII without spaces.", param="Idempotency-Key")
    if not 0 < len(call.key) <= MAX_KEY:
        raise Malformed(f"The Idempotency-Key has 1 to {MAX_KEY} characters.", param="Idempotency-Key")
    return call.key


def _nothing_more(call: Call) -> None:
    if call.body:
        raise Malformed("This takes no body: what is approved cannot be changed any more.")


def _used_before() -> Conflict:
    return Conflict(
        "The idempotency key was already used for a different request.", code="idempotency_conflict"
    )


def _reported_before() -> Conflict:
    return Conflict("Another outcome was reported for it before.", code="outcome_conflict")
