"""What operators do from a terminal: look, deny, revoke, resolve, stop, verify, export. Nobody approves here.

What is shown to people goes through the one renderer; `--json` is ASCII, one object a line, with every value
as it is.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import uuid
from typing import Any

from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.management.base import CommandError, CommandParser

from confirmhub import display
from confirmhub.confirmations import ledger, queries
from confirmhub.confirmations.errors import Busy, ConfirmationError
from confirmhub.confirmations.models import Confirmation, Halt
from confirmhub.confirmations.screen import check_value
from confirmhub.confirmations.states import Result, Status
from confirmhub.oauth import clients
from confirmhub.ops.management.plain import PlainCommand
from confirmhub.review import reach, wording

SHORT = 64  # characters of a value in a list


class Command(PlainCommand):
    help = "Look at confirmations, settle them as an operator, stop redemptions, verify and export the log."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, parser_class=argparse.ArgumentParser)
        listed = verbs.add_parser("list", help="the newest confirmations")
        listed.add_argument("--status", choices=list(Status))
        listed.add_argument("--client", help="only of this client id")
        listed.add_argument("--limit", type=_count, default=20, help="how many, 1 to 1000")
        shown = verbs.add_parser("show", help="one confirmation, whole")
        verbs.add_parser("stops", help="the stops that are in force")
        moves = {
            "deny": "settle a question with no",
            "cancel": "take a question back",
            "revoke": "take a yes back that was not used",
            "resolve": "say what came of a redemption that nobody reported on",
        }
        for verb, words in moves.items():
            move = verbs.add_parser(verb, help=words)
            move.add_argument("confirmation_id", metavar="id", type=uuid.UUID, help="the confirmation's id")
            _signed(move)
            if verb == "resolve":
                move.add_argument("--result", choices=list(Result), required=True)
        shown.add_argument("confirmation_id", metavar="id", type=uuid.UUID, help="the confirmation's id")
        stop = verbs.add_parser("stop", help="stop redemptions; without a limit, all of them")
        stop.add_argument("--client", default="", help="only of this client id")
        stop.add_argument("--user", default="", help="only for this person, by user name")
        stop.add_argument(
            "--action", default="*", help="only actions of this name; * stands for any characters"
        )
        lift = verbs.add_parser("lift", help="let redemptions go on")
        lift.add_argument("halt_id", metavar="id", type=int, help="the stop's number, as `stops` has it")
        for move in (stop, lift):
            _signed(move)
        verify = verbs.add_parser("verify", help="check every link of the log")
        verify.add_argument("--file", help="an export to check instead of the database")
        for each in verbs.choices.values():
            each.add_argument("--json", dest="as_json", action="store_true", help="for programs")
        verbs.add_parser("export", help="write the whole log as JSON Lines")

    def handle(self, *_: Any, verb: str, **options: Any) -> None:
        try:
            getattr(self, f"_{verb}")(**options)
        except Busy as exc:
            raise CommandError(str(exc)) from exc
        except ConfirmationError as exc:
            raise CommandError(f"Refused: {exc}") from exc

    def _list(self, *, status: str | None, client: str | None, limit: int, as_json: bool, **_: Any) -> None:
        found = queries.list_newest(status=status, client_id=client, limit=limit)
        if as_json:
            self._print(*map(_record, found))
            return
        labels = clients.describe_all(client_ids={row.requester_client_id for row in found})
        people = wording.names({row.requester_subject for row in found})
        for row in found:
            words = (
                str(row.id),
                f"{row.effective_status:9}",
                _time(row.requested_at),
                display.short(row.action, SHORT),
                display.short(labels[row.requester_client_id].host, SHORT),
                f"for {people.get(row.requester_subject, display.short(row.requester_subject, SHORT))}",
            )
            self.stdout.write("  ".join(words))
        self.stderr.write(f"{len(found)} shown, the newest first.")

    def _show(self, *, confirmation_id: uuid.UUID, as_json: bool, **_: Any) -> None:
        row = queries.get_for_operator(confirmation_id=confirmation_id)
        if as_json:
            self._print(_record(row))
            return
        client = clients.describe(client_id=row.requester_client_id)
        subject = row.requester_subject
        person = display.unshow(wording.names({subject}).get(subject, ""))  # all lines are rendered below
        outcome = getattr(row, "outcome", None)
        lines = [
            ("Status", row.effective_status),
            ("Who asks", client.host + ("" if client.verified else " (not verified)")),
            ("On behalf of", f"{person} (account {subject})" if person else subject),
            ("Question", row.question),
            ("Action", row.action),
            *(
                (f"Argument {name}", json.dumps(value, ensure_ascii=False))
                for name, value in row.argument_items
            ),
            *((f"Seen: {label}", value) for label, value in row.fact_items),
            ("Its own words", row.summary or "none"),
            ("Check value", check_value(row.view_digest)),
            ("Asked at", _time(row.requested_at)),
            ("Decide by", _time(row.decide_by)),
            ("Redeemed at", _time(row.redeemed_at)),
            ("Reason", row.settled_reason or "none"),
            ("Outcome", outcome.result if outcome else "none is recorded"),
            *([("What came of it", outcome.detail)] if outcome else []),
            (
                "Log",
                "whole"
                if queries.log_is_intact(confirmation_id=confirmation_id)
                else "BROKEN: `./hub manage hub verify` says where",
            ),
        ]
        for name, value in lines:
            self.stdout.write(f"{display.text(name):16} {display.text(str(value))}")
        for event in row.events.order_by("seq"):
            # As the log's lines are written: one flat object of strings.
            said = (f"{name}: {value}" for name, value in json.loads(event.detail).items() if value)
            actor, detail = display.text(event.actor), display.text(", ".join(said))
            self.stdout.write(f"{_time(event.at)}  {event.kind:10}  {actor}  {detail}")

    def _stops(self, *, as_json: bool, **_: Any) -> None:
        found = queries.list_halts()
        if as_json:
            self._print(*map(_stop, found))
            return
        hosts = wording.hosts(halt.client_id for halt in found if halt.client_id)
        people = wording.names(halt.subject for halt in found)
        for halt in found:
            words = (
                str(halt.pk),
                f"client {hosts.get(halt.client_id, 'any')}",
                f"user {people.get(halt.subject, display.text(halt.subject)) or 'any'}",
                f"action {display.text(halt.action_pattern)}",
                f"{_time(halt.set_at)} by {display.text(halt.set_by.get_username())}",
            )
            self.stdout.write(f"{'  '.join(words)}: {display.text(halt.reason)}")
        self.stderr.write(f"{len(found)} in force.")

    def _deny(self, *, confirmation_id: uuid.UUID, by: str, reason: str, as_json: bool, **_: Any) -> None:
        ledger.deny(confirmation_id=confirmation_id, operator=_person(by), reason=reason)
        self._settled(confirmation_id, "is denied", as_json=as_json)

    def _cancel(self, *, confirmation_id: uuid.UUID, by: str, reason: str, as_json: bool, **_: Any) -> None:
        ledger.cancel(confirmation_id=confirmation_id, requester=_person(by), reason=reason)
        self._settled(confirmation_id, "is taken back", as_json=as_json)

    def _revoke(self, *, confirmation_id: uuid.UUID, by: str, reason: str, as_json: bool, **_: Any) -> None:
        ledger.revoke(confirmation_id=confirmation_id, revoker=_person(by), reason=reason)
        self._settled(confirmation_id, "is revoked", as_json=as_json)

    def _resolve(
        self, *, confirmation_id: uuid.UUID, by: str, reason: str, result: str, as_json: bool, **_: Any
    ) -> None:
        operator, found = _person(by), Result(result)
        ledger.resolve_outcome(confirmation_id=confirmation_id, operator=operator, result=found, note=reason)
        self._settled(confirmation_id, f"has its outcome: {found}", as_json=as_json)

    def _settled(self, confirmation_id: uuid.UUID, words: str, *, as_json: bool) -> None:
        if as_json:
            self._print(_record(queries.get_for_operator(confirmation_id=confirmation_id)))
        else:
            self.stdout.write(f"{confirmation_id} {words}.")

    def _stop(
        self, *, by: str, reason: str, client: str, user: str, action: str, as_json: bool, **_: Any
    ) -> None:
        subject = str(_person(user).pk) if user else ""
        made = ledger.halt(
            operator=_person(by), reason=reason, client_id=client, subject=subject, action_pattern=action
        )
        reached = reach.of(halt=made)
        if as_json:
            counted = {"open": reached.open, "ever_asked": reached.ever_asked}
            self._print(_stop(made) | counted | {"client_known": reached.client_known})
            return
        self.stdout.write(f"Stopped. {reached.covers}")
        if reached.doubt:
            self.stdout.write(reached.doubt)
        self.stdout.write(f"Let it go on with: ./hub manage hub lift {made.pk} --as NAME --reason ...")

    def _lift(self, *, halt_id: int, by: str, reason: str, as_json: bool, **_: Any) -> None:
        ledger.lift(halt_id=halt_id, operator=_person(by), reason=reason)
        if as_json:
            self._print({"id": halt_id, "lifted": True, "reason": reason})
        else:
            self.stdout.write(f"Stop {halt_id} is lifted.")

    def _verify(self, *, file: str | None, as_json: bool, **_: Any) -> None:
        options = [*(["--file", file] if file else []), *(["--json"] if as_json else [])]
        call_command("verify_audit", *options, stdout=self.stdout)

    def _export(self, **_: Any) -> None:
        call_command("export_audit", stdout=self.stdout)

    def _print(self, *records: dict[str, Any]) -> None:
        for record in records:
            self.stdout.write(json.dumps(record, separators=(",", ":")))


def _signed(move: argparse.ArgumentParser) -> None:
    move.add_argument("--as", dest="by", required=True, help="who does it: the user name of an operator")
    move.add_argument("--reason", required=True, help="why; it stands in the record")


def _count(text: str) -> int:
    if not 1 <= (count := int(text)) <= 1000:
        raise argparse.ArgumentTypeError("from 1 to 1000")
    return count


def _person(name: str) -> User:
    found = User.objects.filter(username=name).first()
    if found is None:
        raise CommandError(f"There is no user {display.short(name, SHORT)}.")
    return found


def _stop(halt: Halt) -> dict[str, Any]:
    return {
        "id": halt.pk,
        "client": halt.client_id or "any",
        "user": halt.subject or "any",
        "action": halt.action_pattern,
        "set_at": halt.set_at.isoformat(),
        "reason": halt.reason,
    }


def _record(row: Confirmation) -> dict[str, Any]:
    outcome = getattr(row, "outcome", None)
    return {
        "id": str(row.id),
        "status": row.effective_status,
        "client_id": row.requester_client_id,
        "subject": row.requester_subject,
        "audience": row.audience,
        "action": row.action,
        "arguments": dict(row.argument_items),
        "summary": row.summary,
        "question": row.question,
        "policy": row.policy,
        "requested_at": row.requested_at.isoformat(),
        "decide_by": row.decide_by.isoformat(),
        "redeemed_at": row.redeemed_at and row.redeemed_at.isoformat(),
        "reason": row.settled_reason,
        "outcome": outcome and {"result": outcome.result, "detail": outcome.detail},
    }


def _time(at: dt.datetime | None) -> str:
    return f"{at.astimezone(dt.UTC):%Y-%m-%d %H:%M:%S} UTC" if at else "-"
