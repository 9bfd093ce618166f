"""Every guarantee and every race of SPEC.md has tests that fail when it is broken, and these exist."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests import specification

ROOT = Path(__file__).resolve().parents[2]
LAWS = "tests/laws"
LAW = f"{LAWS}/test_every_mutation.py::test_what_changed_applied_to_the_old_state_is_the_fresh_state"
DURABILITY = f"{LAWS}/test_guarantees_durability.py"
VIEWS = f"{LAWS}/test_guarantees_views.py"
REFUSALS = f"{LAWS}/test_guarantees_refusals.py"
CRASH = f"{LAWS}/test_interleavings_crash.py"
INPUT = f"{LAWS}/test_interleavings_input.py"
PAGES = f"{LAWS}/test_interleavings_pages.py"
APPROVALS = "tests/end_to_end/test_reports_approvals.py"
STORM = "tests/server/sessions/test_approval_storm.py"
STREAM = f"{LAWS}/test_interleavings_stream.py"
LIST = f"{LAWS}/test_guarantees_list.py"
LIST_RACES = f"{LAWS}/test_interleavings_list.py"
ATTACH = f"{LAWS}/test_interleavings_attach.py"
REMOTE = f"{LAWS}/test_interleavings_remote.py"
WORKERS = f"{LAWS}/test_guarantees_workers.py"
SESSIONS_REMOTE = "tests/server/sessions/test_remote.py"
SESSIONS_LOST = "tests/server/sessions/test_remote_lost.py"
SCHEDULES = "tests/simulation/test_schedules.py"
WHATEVER = f"{SCHEDULES}::test_whatever_becomes_of_workers_their_turns_end_in_time_with_what_they_produced"
HOSTILE = "tests/server/connections/test_hostile.py"
TOKENS = "tests/end_to_end/test_tokens.py"
ENDS = "tests/end_to_end/test_token_ends.py"
TOKEN_RACES = f"{LAWS}/test_interleavings_tokens.py"
OUTBOX = "tests/server/connections/test_outbox.py"
SLOW = "tests/server/connections/test_slow_readers.py"

GUARANTEES: dict[str, list[str]] = {
    "G1": [
        f"{DURABILITY}::test_g1_what_was_acknowledged_survives_power_loss",
        f"{DURABILITY}::test_g1_what_was_acknowledged_survives_kill_9",
        f"{CRASH}::test_r7_the_server_is_killed_right_after_a_message_was_announced",
    ],
    "G2": [
        f"{DURABILITY}::test_g2_an_input_that_started_a_turn_never_starts_another",
        f"{DURABILITY}::test_g2_inputs_that_wait_start_their_turns_in_order_over_crashes",
        f"{INPUT}::test_r22_an_input_is_accepted_ahead_of_the_end_of_the_turn",
        f"{INPUT}::test_r22_an_input_is_accepted_behind_the_end_of_the_turn",
        "tests/server/sessions/test_turns_properties.py::test_every_accepted_input_has_exactly_one_end",
    ],
    "G3": [
        f"{INPUT}::test_r18_a_prompt_is_repeated_after_its_turn",
        f"{INPUT}::test_r18_a_prompt_is_repeated_after_a_clear",
        f"{INPUT}::test_r21_the_answer_is_lost_and_the_prompt_is_sent_again_in_every_way",
        f"{INPUT}::test_r21_a_new_prompt_is_sent_twice_at_once_from_two_connections",
    ],
    "G4": [
        f"{DURABILITY}::test_g4_no_version_is_used_twice_over_crashes_and_restarts",
        f"{CRASH}::test_r6_two_crashes_in_a_row_the_second_during_the_repair",
        f"{CRASH}::test_r10_a_backup_is_restored_and_grows_again",
    ],
    "G5": [
        f"{VIEWS}::test_g5_copies_with_the_same_revision_are_equal",
        f"{VIEWS}::test_g5_a_chronicle_refuses_two_states_of_one_version",
    ],
    "G6": [
        f"{VIEWS}::test_g6_every_version_comes_in_order_each_in_one_frame",
        f"{STREAM}::test_r13_a_slow_client_loses_an_early_frame",
    ],
    "G7": [LAW],
    "G8": [
        f"{VIEWS}::test_g8_an_answer_stands_at_its_version",
        f"{VIEWS}::test_g8_an_answer_comes_after_what_it_brought_about",
        f"{VIEWS}::test_g8_the_answer_to_a_reader_that_is_behind_follows_its_sync",
        f"{PAGES}::test_r14_a_page_is_computed_then_a_change_is_published_then_the_page_is_sent",
    ],
    "G9": [f"{DURABILITY}::test_g9_nothing_of_a_turn_is_published_after_its_end"],
    "G10": [
        f"{INPUT}::test_r19_the_time_comes_while_an_answer_is_stored",
        f"{INPUT}::test_r19_an_answer_comes_while_the_expiry_is_stored",
        f"{INPUT}::test_r27_two_clients_answer_at_once",
        f"{STORM}::test_a_storm_of_answers_leaves_one_outcome_of_each_and_executes_what_was_approved_once",
        f"{APPROVALS}::test_two_clients_answer_at_the_same_instant_a_thousand_times",
    ],
    "G11": [
        f"{DURABILITY}::test_g11_a_tool_runs_only_after_that_was_committed_and_never_again",
        "tests/server/sessions/test_claims.py::test_a_second_claim_is_refused_says_so_and_changes_nothing",
        "tests/server/sessions/test_claims.py::test_of_claims_at_once_one_executes",
    ],
    "G12": [
        f"{DURABILITY}::test_g12_a_change_that_is_marked_durable_was_committed_before",
        f"{DURABILITY}::test_g12_what_was_only_streamed_is_never_marked_durable",
        f"{CRASH}::test_r5_a_part_existed_only_before_the_crash",
        f"{STREAM}::test_r8_a_tool_commits_while_a_text_streams",
    ],
    "G13": [
        f"{DURABILITY}::test_g13_sequences_go_on_over_clears_and_crashes",
        f"{DURABILITY}::test_g13_the_id_of_another_message_is_refused_as_an_inputs",
    ],
    "G14": [
        f"{VIEWS}::test_g14_walking_pages_visits_each_visible_message_once_while_others_are_written",
        f"{STREAM}::test_r15_only_internal_changes_happen",
    ],
    "G15": [
        f"{VIEWS}::test_g15_a_reader_that_does_not_read_costs_little_and_loses_nothing",
        f"{OUTBOX}::test_what_is_admitted_is_never_more_than_mark_longest_frame_and_one_chunk",
        f"{SLOW}::test_a_client_that_never_reads_costs_bounded_memory_disturbs_nobody_and_is_cut",
    ],
    "G16": [
        f"{REFUSALS}::test_g16_a_refused_call_changes_nothing",
        f"{REFUSALS}::test_g16_a_full_queue_and_an_archived_session_refuse_a_prompt_by_name",
        f"{HOSTILE}::test_hostile_frames_get_an_error_with_a_stable_code_and_change_nothing",
    ],
    "G17": [f"{DURABILITY}::test_g17_disconnecting_stops_nothing"],
    "G18": [f"{INPUT}::test_r24_a_stop_names_a_turn_that_has_ended_while_the_next_one_runs"],
    "G19": [
        f"{VIEWS}::test_g19_times_never_go_back",
        f"{VIEWS}::test_g19_times_never_go_back_over_a_crash_that_loses_what_was_streamed_last",
        "tests/server/sessions/test_versions.py::test_server_time_never_goes_back",
    ],
    "G20": [f"{VIEWS}::test_g20_internal_messages_are_shown_to_nobody_else"],
    "G21": [f"{REFUSALS}::test_g21_a_session_that_never_was_and_one_that_is_gone_are_answered_alike"],
    "G22": [f"{REFUSALS}::test_g22_the_id_of_a_deleted_session_is_never_given_again"],
    "G31": [
        f"{LIST}::test_g31_lists_come_to_equal_the_servers",
        f"{LIST}::test_g31_nothing_is_told_before_the_answer_nor_without_a_watch",
        f"{LIST_RACES}::test_r50_a_session_changes_after_the_list_was_read_and_before_the_answer",
        f"{LIST_RACES}::test_r51_a_session_is_deleted_after_the_list_was_read_and_before_the_answer",
        f"{LIST_RACES}::test_r57_a_commit_fails_and_the_data_is_there_or_not",
    ],
    "G32": [
        f"{TOKENS}::test_g32_what_a_new_token_does_not_allow_ends",
        f"{TOKEN_RACES}::test_r59_a_right_is_lost_while_a_subscribe_is_under_way",
    ],
    "G33": [
        f"{ENDS}::test_g33_a_connection_ends_when_the_grace_is_over",
        f"{ENDS}::test_the_grace_is_what_the_specification_says",
    ],
    "G34": [f"{TOKENS}::test_g34_a_key_is_its_subjects"],
    "G23": [
        f"{WORKERS}::test_g23_a_generation_is_on_disk_before_it_is_told",
        f"{ATTACH}::test_r31_two_workers_attach_to_an_offered_turn_at_once",
        f"{ATTACH}::test_r34_writes_of_an_older_connection_arrive_after_the_attach_on_a_new_one",
        f"{ATTACH}::test_r41_a_worker_stands_still_for_longer_than_its_lease",
        WHATEVER,
    ],
    "G24": [
        f"{WORKERS}::test_g24_what_was_acknowledged_as_durable_survives_power_loss",
        f"{WORKERS}::test_g24_a_stored_write_is_acknowledged_when_it_is_on_disk",
        f"{REMOTE}::test_r37_absorbing_found_nothing_and_an_input_is_accepted_before_a_restart",
    ],
    "G25": [
        f"{REMOTE}::test_r33_the_connection_is_lost_while_writes_are_on_their_way",
        f"{REMOTE}::test_r35_the_server_is_killed_after_it_took_live_writes",
        f"{REMOTE}::test_r47_a_commit_fails_while_a_worker_writes",
        f"{ATTACH}::test_r43_a_second_worker_goes_on_and_then_the_server_is_killed",
        "tests/worker/test_staying.py::test_a_turn_survives_a_server_that_is_killed",
        WHATEVER,
    ],
    "G26": [
        f"{REMOTE}::test_r38_the_turn_is_stopped_while_writes_are_on_their_way",
        f"{REMOTE}::test_r39_the_turn_is_stopped_while_the_worker_is_away",
        f"{SESSIONS_REMOTE}::test_a_stop_reaches_the_worker_at_once_and_nothing_enters_after_it",
    ],
    "G27": [
        f"{WORKERS}::test_g27_no_turn_ends_before_its_lease_whatever_is_lost",
        f"{ATTACH}::test_r44_the_lease_ends_in_the_moment_of_an_attach",
        f"{SESSIONS_LOST}::test_after_the_lease_the_turn_fails_and_keeps_its_text",
        WHATEVER,
    ],
    "G28": [
        f"{REMOTE}::test_r36_the_server_is_killed_between_a_commit_and_its_ack",
        f"{REMOTE}::test_r40_an_interaction_ends_while_the_worker_or_the_server_is_away",
        f"{SESSIONS_LOST}::test_results_that_were_lost_with_the_connection_are_told_again",
    ],
    "G29": [
        f"{WORKERS}::test_g29_a_claim_is_on_disk_before_it_is_acknowledged_and_is_the_only_one",
        f"{REMOTE}::test_r42_a_worker_dies_with_a_tool_running_and_another_goes_on",
        WHATEVER,
    ],
    "G30": [
        f"{REMOTE}::test_r49_the_agent_appends_faster_than_the_server_can_take",
        f"{SESSIONS_REMOTE}::test_a_worker_that_ignores_its_window_is_detached",
        f"{SESSIONS_REMOTE}::test_a_worker_that_does_not_read_is_detached",
    ],
}
"""The tests that were seen to fail when the guarantee was broken on purpose."""


@cache
def names_in(path: Path) -> frozenset[str]:
    """Return the names of the tests of a module."""
    if not path.exists():
        return frozenset()
    body = ast.parse(path.read_text("utf-8")).body
    functions = [node for node in body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    return frozenset(function.name for function in functions if function.name.startswith("test_"))


def numbered(section: str, letter: str) -> list[str]:
    """Return the ids of the rows of a section's table: `G1`, `G2`, and so on."""
    return re.findall(rf"^\| ({letter}\d+) \|", specification.section(section), re.MULTILINE)


def test_every_guarantee_of_the_specification_has_tests_and_no_other() -> None:
    """A guarantee that is added to SPEC 1.3 or 14.10 needs a test that fails without it."""
    assert {*numbered("1.3", "G"), *numbered("14.10", "G")} == set(GUARANTEES)
    assert all(GUARANTEES.values())


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_the_tests_of_a_guarantee_exist(guarantee: str) -> None:
    """A test that was renamed or removed leaves no guarantee without one."""
    for test in GUARANTEES[guarantee]:
        path, name = test.split("::")
        assert name in names_in(ROOT / path), test


def test_every_race_of_the_specification_is_the_name_of_a_test() -> None:
    """SPEC 12 and 14.11: a test bears each name."""
    names = {name for path in (ROOT / LAWS).glob("test_*.py") for name in names_in(path)}
    tested = {match[1].upper() for name in names if (match := re.match(r"test_(r\d+)_", name))}
    assert tested == set(numbered("12", "R") + numbered("14.11", "R"))
