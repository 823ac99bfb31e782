"""What the tests of the nearest relative hold, and what went wrong in others: which of our tests holds it.

The relative is mcp-confirm 0.2.1. Each of its tests is described in our words, with the difference where
ours is meant to behave otherwise. `TRAPS` are what went wrong in similar systems. Files are named from
this folder.
"""

from __future__ import annotations

import ast
import functools
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

LEDGER = {
    "a yes is spent once and the second try is refused as used": (
        "confirmations/test_redeem.py::test_a_second_redemption_is_refused_with_the_time_of_the_first"
    ),
    "200 ids are all different": (
        "confirmations/test_request.py::test_two_hundred_confirmations_have_two_hundred_ids"
    ),
    "an id that was never issued is refused; ours says there is none, as processes share one ledger": (
        "confirmations/test_redeem.py::test_an_unknown_confirmation_is_not_redeemed"
    ),
    "an empty id is refused": "bridge/test_hub.py::test_an_empty_or_malformed_id_is_refused",
    "past the deadline it is refused; ours as expired and not as used": (
        "confirmations/test_redeem.py::test_a_late_redemption_is_refused_before_the_sweeper_ran"
    ),
    "the last moment is in time and the deadline is not; ours by the clock of Postgres": (
        "confirmations/test_redeem.py"
        "::test_the_last_moment_before_the_deadline_is_in_time_and_the_deadline_is_not"
    ),
    "what is overdue is swept; ours never on the way of a redemption": (
        "confirmations/test_decide.py::test_the_sweeper_expires_what_is_overdue_and_nothing_else"
    ),
    "what is overdue does not count as outstanding": (
        "confirmations/test_request.py::test_what_is_overdue_takes_no_place_among_the_open"
    ),
    "spending one leaves another valid": (
        "confirmations/test_redeem.py::test_spending_one_leaves_the_others_as_they_are"
    ),
    "a lifetime of 0, -1 or -300 seconds is refused": (
        "confirmations/test_rules.py::test_a_rule_that_means_nothing_is_not_kept"
    ),
}

PROMPT = {
    "a plain path is shown unchanged": "display/test_properties.py::test_plain_ascii_is_shown_as_it_is",
    "a forged notice of several lines is on one line": (
        "display/test_properties.py::test_the_text_is_one_line_that_begins_and_ends_with_something_visible"
    ),
    "and its text is still to be read, wherever the file is named": (
        "bridge/test_files.py::test_any_name_is_listed_shown_true_and_deleted"
    ),
    "line feed, tab and return break no line; ours shows each by its number and not as a space": (
        "display/test_rules.py::test_a_rule_holds"
    ),
    "no zero-width space and no right-to-left override reaches the eye; ours tells where one was": (
        "display/test_properties.py::test_nothing_hidden_is_shown_raw"
    ),
    "the mark for a right-to-left override says what it is": (
        "display/test_rules.py::test_a_token_says_what_it_stands_for"
    ),
    "of a path of over 400 characters beginning and file name stay, in 120": (
        "display/test_rules.py::test_a_long_path_keeps_its_folder_and_its_name"
    ),
    "nothing and nothing but spaces are visible; ours tells them apart": (
        "display/test_rules.py::test_a_rule_holds"
    ),
}

SERVER = {
    "the first round asks about the file, with a state, and deletes nothing": (
        "bridge/test_asking.py::test_the_first_round_asks_about_the_file_and_touches_nothing"
    ),
    "on the wire a state has the SDK's version mark and shows no id": (
        "bridge/test_asking.py::test_nothing_secret_is_in_the_link_and_nothing_readable_in_the_state"
    ),
    "accept deletes; ours after a yes on the page, in the same call": (
        "bridge/test_asking.py::test_a_host_that_opens_pages_gets_the_file_deleted_in_one_call"
    ),
    "decline and cancel delete nothing": (
        "bridge/test_asking.py::test_a_refusal_in_the_host_closes_the_question"
    ),
    "accept with false deletes nothing; ours neither with true, as a host's answer is no decision": (
        "bridge/test_asking.py::test_no_content_of_a_hosts_answer_is_a_decision"
    ),
    "the state for one file is refused for another, by the SDK": (
        "bridge/test_once.py::test_a_state_for_one_file_is_refused_for_another_by_the_boundary"
    ),
    "a state sealed under another key is refused by the SDK": (
        "bridge/test_replicas.py::test_a_state_opens_on_another_replica_and_through_a_change_of_keys"
    ),
    "the same state twice is refused, by us, even after the file was made again": (
        "bridge/test_once.py::test_the_same_state_again_is_refused_even_when_the_file_is_there_again"
    ),
    "a state of a sibling with the same key is refused there; ours accepts it exactly once": (
        "bridge/test_replicas.py::test_a_state_opens_on_another_replica_and_through_a_change_of_keys"
    ),
    "an answer without a state deletes nothing": (
        "bridge/test_asking.py::test_an_answer_without_a_state_is_no_answer"
    ),
    "a path outside, one with dots, and a folder are refused before anybody is asked": (
        "bridge/test_files.py::test_a_path_that_must_not_be_deleted_is_refused_before_anybody_is_asked"
    ),
    "swapped for a link that leads outside or inside, or removed: refused, and the target is intact": (
        "bridge/test_drift.py::test_a_changed_target_is_left_and_the_yes_is_taken_back"
    ),
}

EARLIER = {
    "the order of keys does not change the digest": (
        "confirmations/test_actions.py::test_the_order_of_keys_and_white_space_do_not_change_the_digest"
    ),
    "a seal that is good does not make a second use good": (
        "bridge/test_once.py::test_the_same_confirmation_again_is_refused"
    ),
    "a tampered payload or tag is refused": (
        "bridge/test_once.py::test_a_state_that_was_tampered_with_is_refused_by_the_boundary"
    ),
    "a constant, unsigned or malformed state is refused and crashes nothing": (
        "bridge/test_once.py::test_a_state_that_was_not_sealed_is_refused_by_the_boundary"
    ),
    "another principal's state is refused": (
        "bridge/test_once.py::test_a_state_of_another_is_refused_by_the_boundary"
    ),
    "another method's state is refused": (
        "bridge/test_once.py::test_a_sealed_state_is_no_other_methods_state"
    ),
    "an empty principal is refused": (
        "confirmations/test_request.py::test_a_principal_without_a_name_or_with_a_false_one_is_refused"
    ),
    "it can be verified without being consumed": (
        "bridge/test_hub.py::test_looking_at_a_yes_does_not_spend_it"
    ),
    "spent ones are swept; ours once they are sealed and old, and by batches": (
        "confirmations/test_audit.py"
        "::test_what_is_finished_sealed_and_old_leaves_in_batches_and_its_seals_stay"
    ),
    "a secret of 0, 1, 16 or 31 bytes is refused": (
        "test_env.py::test_a_secret_of_less_than_32_characters_stops_the_start"
    ),
}

BEYOND = {
    "an expired question says expired": "bridge/test_asking.py::test_an_expired_question_says_so",
    "a declined one says declined": "bridge/test_asking.py::test_a_no_on_the_page_is_told_with_its_reason",
    "a replay says what came of the first": (
        "bridge/test_once.py::test_the_same_message_again_gets_the_recorded_outcome"
    ),
    "no two refusals have one code": "api/test_errors.py::test_no_two_refusals_have_the_same_type",
    "a file with other content, or another of the same content, is left": (
        "bridge/test_drift.py::test_a_changed_target_is_left_and_the_yes_is_taken_back"
    ),
    "a parent folder that became a link leads nowhere": (
        "bridge/test_drift.py::test_a_parent_that_became_a_link_leads_nowhere"
    ),
    "a change between the last look and the act is put back": (
        "bridge/test_drift.py::test_a_change_after_the_last_look_is_noticed_and_put_back"
    ),
    "of many processes that redeem at once one wins": (
        "confirmations/test_races.py::test_of_sixteen_processes_that_redeem_at_once_one_gets_a_receipt"
    ),
    "two values never look alike": "display/test_properties.py::test_two_values_never_look_alike",
    "a no is recorded with who and when": (
        "confirmations/test_decide.py::test_a_decision_is_recorded_with_who_and_when"
    ),
}

TRAPS = {
    "what the agent is given lets it decide": "pages/test_confirm.py::test_a_bearer_token_opens_no_page",
    "whoever has the link decides": "browser/test_deciding.py::test_somebody_else_finds_nothing",
    "opening a link approves": "pages/test_confirm.py::test_looking_changes_nothing",
    "a page of somebody else's approves": "pages/test_confirm.py::test_a_form_from_elsewhere_is_refused",
    "an approval needs no sign-in": (
        "pages/test_confirm.py::test_without_a_sign_in_a_decision_is_not_carried_through"
    ),
    "the approver is a name that somebody typed": (
        "pages/test_receipt.py::test_the_record_names_who_was_signed_in_whatever_the_form_says"
    ),
    "what is asked is edited on the way, and checked no more": (
        "confirmations/test_database.py::test_what_was_asked_cannot_be_changed"
    ),
    "a mistake in the configuration means allow": (
        "confirmations/test_rules.py::test_a_rule_that_means_nothing_is_not_kept"
    ),
    "tools that are configured wrong are served unguarded": (
        "bridge/test_tools.py::test_a_module_without_tools_stops_the_start"
    ),
    "a refused call is run by another way": (
        "bridge/test_asking.py::test_a_no_reaches_a_host_that_opens_no_pages"
    ),
    "a tool's own check is gone round by asking for its action by name": (
        "bridge/test_hub.py::test_the_name_of_a_tool_here_cannot_be_asked_for"
    ),
    "an approved call is run again on a later turn": (
        "bridge/test_once.py::test_the_same_call_on_a_later_day_is_a_new_question"
    ),
    "what is approved is not what was shown": (
        "confirmations/test_decide.py::test_a_decision_on_another_screen_is_refused"
    ),
    "what is run is not what was approved": (
        "confirmations/test_redeem.py::test_a_yes_to_one_action_is_no_yes_to_another"
    ),
    "what is always allowed to one agent is allowed to another": (
        "confirmations/test_rules.py::test_what_is_allowed_to_one_client_is_asked_of_a_person_for_another"
    ),
    "people are told of what was answered already": (
        "notifications/test_delivery.py::test_a_confirmation_that_was_settled_meanwhile_is_not_asked_for"
    ),
    "a redemption tidies up, and takes longer the more there is": (
        "confirmations/test_redeem.py::test_a_redemption_is_one_statement_and_tidies_nothing"
    ),
    "all writers queue for the end of one log": (
        "confirmations/test_races.py::test_a_move_waits_for_no_move_of_another_row"
    ),
    "the same request twice leaves the first caller hanging": (
        "confirmations/test_waiting.py::test_a_waiter_is_woken_by_the_decision"
    ),
    "and both callers have one question": (
        "confirmations/test_request.py::test_of_simultaneous_requests_for_one_action_one_row_comes"
    ),
    "the agent's own account stands for what is done": (
        "notifications/test_messages.py::test_what_the_agent_wrote_is_in_no_part_of_a_message"
    ),
    "the host gives up before a person can have read it": (
        "bridge/test_asking.py::test_opening_the_page_is_not_a_decision"
    ),
    "a person is asked without limit": (
        "confirmations/test_rules.py::test_an_approver_for_whom_too_much_waits_is_not_asked_more"
    ),
    "an agent asks without limit": (
        "confirmations/test_request.py::test_too_many_open_requests_are_refused_with_when_to_come_back"
    ),
}

TABLES = (LEDGER, PROMPT, SERVER, EARLIER, BEYOND, TRAPS)


@functools.cache
def names_in(file: str) -> frozenset[str]:
    tree = ast.parse((ROOT / "tests" / file).read_text(encoding="utf-8"))
    functions = (node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return frozenset(function.name for function in functions if function.name.startswith("test_"))


@pytest.mark.parametrize("behaviour", [behaviour for table in TABLES for behaviour in table])
def test_a_behaviour_has_a_test_of_ours(behaviour: str) -> None:
    (named,) = (table[behaviour] for table in TABLES if behaviour in table)
    file, _, name = named.partition("::")

    assert name in names_in(file)
