"""What the protocol (MCP 2026-07-28) requires of a server that asks, and the tests that show each requirement.

Ids: S, server; E, elicitation; G, capability gating; X, the table of errors; M, `_meta`; H, transports; R, discovery.
What binds only a client is not here. `shown_by` names tests by their pytest ids. A `note` begins with

    host:    the host (mcp 2.3.0) does this, or the part of it that is named
    author:  the part that lies with the flow's author; stands beside tests only

`test_requirements` holds this against the tests there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ("OFFICIAL", "REQUIREMENTS", "Requirement")

OFFICIAL: Final = "tests/conformance/test_official.py::test_the_official_scenario_has_no_failure_and_no_warning"


@dataclass(frozen=True)
class Requirement:
    """One requirement in one line; `clause` is the page of the specification and the place on it."""

    id: str
    clause: str
    text: str
    shown_by: tuple[str, ...]
    note: str = ""


def _of(file: str, *names: str) -> tuple[str, ...]:
    return tuple(f"tests/{file}.py::test_{name}" for name in names)


def _rows(*names: str) -> tuple[str, ...]:
    return _of("conformance/test_rows", *names)


def _official(*scenarios: str) -> tuple[str, ...]:
    return tuple(f"{OFFICIAL}[{scenario}]" for scenario in scenarios)


_KEPT = _rows(
    "a_server_keeps_nothing_of_a_call_between_rounds", "a_server_of_the_sdk_keeps_nothing_of_a_call_between_rounds"
)
_BOUND = (
    *_of("test_tokens", "another_tool_principal_or_arguments_are_refused_and_named_in_the_log_only"),
    *_rows("a_state_is_bound_to_caller_request_and_arguments"),
    *_of("adapters/test_mcp", "a_token_belongs_to_the_authenticated_principal"),
)
_REFUSED = (
    *_of(
        "test_tokens",
        "what_is_no_token_is_refused_with_the_one_frozen_error",
        "a_truncated_padded_or_recoded_token_is_refused",
    ),
    *_of("adapters/test_mcp", "what_is_no_token_is_the_frozen_error_with_status_400"),
    *_of(
        "properties/test_laws",
        "any_changed_byte_of_a_token_is_refused",
        "any_changed_character_in_requeststate_is_the_one_frozen_error",
    ),
)
_EARLY = _rows("what_is_wrong_before_a_flow_is_reached_has_its_status_and_code")
_TABLE = _of("adapters/test_jsonrpc", "errors_are_by_the_table")
_STREAM = _rows("a_stream_holds_notifications_of_this_request_and_ends_with_its_result")
_QUIET = _rows("without_a_progress_token_and_a_log_level_there_is_one_plain_response")
_CANCELLED = _rows(
    "a_cancelled_request_mints_nothing_keeps_nothing_and_can_be_sent_again",
    "a_client_that_hangs_up_cancels_its_request_and_is_sent_nothing",
    "a_cancelled_notification_stops_the_step_and_nothing_is_answered",
    "a_cancellation_of_nothing_or_of_nonsense_is_ignored",
)
_ORIGIN = _rows("only_posts_of_a_known_origin_are_served_and_no_session_is_made")
_GATED = _rows("only_what_this_request_declares_is_asked_down_to_modes_and_tools")
_ERRORS = _rows("a_tools_failure_is_a_complete_result_and_other_methods_have_an_error_for_it")
_ANSWERS = _rows("an_answer_that_is_no_answer_is_an_error_and_one_that_does_not_fit_is_asked_again")

REQUIREMENTS: Final = (
    # ------------------------------------------------------------------ where questions may be asked
    Requirement(
        "S1",
        "mrtr: introduction",
        "whatever a server wants of the client is asked in a result; it sends no request of its own",
        (
            *_rows("everything_a_server_sends_is_a_response_to_the_request"),
            *_STREAM,
            *_official("server-stateless"),
        ),
    ),
    Requirement(
        "S2",
        "mrtr: supported requests; server requirement 1",
        "tools/call, prompts/get and resources/read may be answered with a question",
        (
            *_rows("tools_prompts_and_resources_ask_and_then_complete"),
            *_official("input-required-result-basic-elicitation", "input-required-result-non-tool-request"),
        ),
    ),
    Requirement(
        "S3",
        "mrtr: supported requests",
        "nothing else is answered with a question: not lists, not discovery",
        (
            *_rows("lists_and_discover_never_ask_though_a_retry_is_sent"),
            *_official("input-required-result-unsupported-methods"),
        ),
    ),
    Requirement(
        "S4",
        "mrtr: server requirement 8",
        "one call may ask as often as it needs",
        (
            *_of("test_replay", "a_long_run_is_warned_about_before_common_clients_give_up"),
            *_official("input-required-result-multi-round"),
        ),
    ),
    Requirement(
        "S5", "mrtr: server requirement 8", "no answer and no retry is counted on: nothing waits for one", _KEPT
    ),
    # ------------------------------------------------------------------ what a result holds
    Requirement(
        "S6",
        "basic: result type",
        "every result says resultType: complete or input_required",
        (
            *_rows("every_result_says_its_type_and_names_the_server_interim_ones_too"),
            *_official("input-required-result-result-type"),
        ),
    ),
    Requirement(
        "S7",
        "mrtr: server requirement 6",
        "a result that asks holds questions, a state, or both; never neither",
        _rows("an_interim_result_holds_questions_and_a_state_and_nothing_else"),
    ),
    Requirement(
        "S8",
        "mrtr: server requirements 2 and 3",
        "questions and state may each be left out; they are never sent empty or null (both are always sent here)",
        _rows("no_null_no_empty_state_and_no_empty_questions_on_the_wire"),
    ),
    Requirement(
        "S9",
        "mrtr: server requirement 2",
        "the keys of the questions are unique within the request",
        (
            *_rows("keys_are_unique_in_a_round_and_in_a_run"),
            *_of("test_replay", "a_repeated_key_takes_the_first_free_number"),
        ),
    ),
    Requirement(
        "S10",
        "mrtr: server requirement 2",
        "a question is an elicitation, a sampling or a roots request, as method and params alone",
        (
            *_rows(
                "questions_are_bare_requests_of_the_three_methods_with_the_keys_of_the_author",
                "what_the_reference_adapter_sends_is_what_the_official_types_describe",
            ),
            *_official(
                "input-required-result-basic-sampling",
                "input-required-result-basic-list-roots",
                "input-required-result-multiple-input-requests",
            ),
        ),
    ),
    Requirement(
        "S11",
        "mrtr: server requirement 7; elicitation: capabilities; sampling: capabilities",
        "nothing is asked that this request does not declare, down to form or URL mode and sampling with tools",
        (*_GATED, *_official("input-required-result-capability-check")),
    ),
    Requirement(
        "S12",
        "mrtr: server requirement 3",
        "the state is one opaque text in any encoding",
        (
            *_of("adapters/test_mcp", "the_token_on_the_wire_is_ours_alone_and_opens_with_our_keys_only"),
            *_official("input-required-result-request-state"),
        ),
    ),
    Requirement(
        "S13",
        "basic: _meta",
        "every result names the server in _meta, interim ones too",
        (
            *_rows("every_result_says_its_type_and_names_the_server_interim_ones_too"),
            *_of("adapters/test_jsonrpc", "discover_names_the_version_and_the_server"),
        ),
    ),
    Requirement(
        "S14",
        "caching",
        "a result that asks has no cache hints; a read resource has both, also after a retry",
        _rows(
            "a_read_resource_carries_private_cache_hints_and_an_interim_result_none",
            "a_public_cache_hint_of_the_host_does_not_reach_a_flow",
        ),
    ),
    # ------------------------------------------------------------------ taking a retry
    Requirement(
        "S15",
        "basic: statelessness",
        "each request is answered from itself alone, by any process",
        (
            *_rows("a_token_of_one_adapter_goes_on_at_the_other"),
            *_of("test_end_to_end", "each_round_lands_on_the_other_process_and_the_quote_is_made_once"),
            *_KEPT,
        ),
    ),
    Requirement(
        "S16",
        "basic: statelessness",
        "what outlives a request is named by something the client sends each time",
        _rows("calls_under_way_at_the_same_time_are_told_apart_by_their_state_alone"),
    ),
    Requirement(
        "S17",
        "mrtr: server requirement 4",
        "an incoming state is taken for an attacker's",
        (
            *_REFUSED,
            *_of("test_tokens", "a_mebibyte_of_garbage_is_refused_before_anything_is_decoded"),
            *_of("test_journal", "a_bomb_is_refused_when_it_is_unzipped"),
            *_of("properties/test_laws", "any_authentic_payload_reads_or_is_corrupt"),
        ),
    ),
    Requirement(
        "S18",
        "mrtr: server requirement 4",
        "the state's integrity is protected, and a state that fails is refused",
        (*_REFUSED, *_official("input-required-result-tampered-state")),
    ),
    Requirement(
        "S19",
        "mrtr: server requirement 5",
        "a state belongs to one caller, for a short time, and to one request; anything else is refused",
        (
            *_BOUND,
            *_rows("an_expired_state_is_refused"),
            *_of(
                "test_tokens",
                "an_expired_token_gets_its_own_text_and_a_tampered_one_does_not",
                "ttl_is_for_each_round_and_max_age_for_the_run",
            ),
        ),
    ),
    Requirement(
        "S20",
        "mrtr: server requirement 5, warning",
        "where a state may be taken once only, the server sees to that",
        _of(
            "test_field_cases",
            "the_last_request_sent_twice_gives_one_result_and_one_idempotency_key_as_the_documentation_says",
        ),
        "author: there is no store, so a state can be sent twice until it expires; a step has an idempotency key that "
        "is the same each time, by which the service it calls does its work once",
    ),
    Requirement(
        "S21",
        "mrtr: error handling",
        "inputResponses are held against their schema",
        (
            *_ANSWERS,
            *_of("test_tokens", "an_entry_outside_the_schema_is_invalid_params_and_nothing_is_lost"),
            *_official("input-required-result-validate-input"),
        ),
    ),
    Requirement(
        "S22",
        "mrtr: error handling",
        "faults of the protocol are JSON-RPC errors",
        (*_TABLE, *_EARLY, *_ANSWERS),
    ),
    Requirement(
        "S23",
        "mrtr: error handling",
        "what is not known or not needed in the answers is ignored",
        (
            *_rows("unknown_members_are_ignored_wherever_a_client_may_put_them"),
            *_of("test_replay", "an_answer_once_given_stays_and_other_keys_are_ignored"),
            *_official("input-required-result-ignore-extra-params"),
        ),
    ),
    Requirement(
        "S24",
        "mrtr: error handling",
        "what is missing is asked again instead of refused",
        (
            *_rows("what_is_missing_is_asked_again_and_what_came_is_kept"),
            *_of(
                "test_replay",
                "a_gather_asks_in_one_round_keeps_partial_answers_and_asks_only_for_the_missing",
                "a_round_without_an_answer_gives_the_same_question_and_the_same_token",
            ),
            *_official("input-required-result-missing-input-response"),
        ),
    ),
    Requirement(
        "S25",
        "elicitation: error handling",
        "a decline, a cancel and no answer at all are each handled; a yes is not assumed",
        (
            *_rows("accept_decline_cancel_and_no_answer_are_four_things"),
            *_of(
                "test_replay",
                "decline_and_cancel_are_thrown_into_the_flow_each_replay",
                "an_uncaught_decline_or_cancel_ends_the_call_readably",
                "a_confirmation_is_true_only_for_accept_and_ok",
            ),
        ),
    ),
    Requirement(
        "S26",
        "elicitation: form mode, security",
        "what comes back is held against the schema that was sent",
        (
            *_of("test_replay", "a_wrong_answer_is_asked_again_with_the_reason_and_then_ends_the_call"),
            *_of("test_forms", "the_types_own_validators_ask_again_with_their_reason"),
            *_of("test_tokens", "an_answer_of_another_kind_is_asked_again_with_the_reason"),
        ),
    ),
    Requirement(
        "S27",
        "tools: security considerations",
        "inputs are validated; access is controlled, calls are limited, outputs are cleaned",
        (
            *_rows("arguments_are_held_against_the_signature_before_anything_runs"),
            *_of("test_tokens", "arguments_too_long_or_too_deep_are_invalid_params"),
            *_of("test_results", "a_result_that_is_not_of_the_declared_type_is_a_tool_error_and_says_why_in_the_log"),
        ),
        "host: access control (its AuthSettings) and rate limits; we bound sizes, events and attempts of a run",
    ),
    Requirement(
        "S28",
        "tools: error handling",
        "a tool's failure is a complete result with isError; an unknown tool or a malformed request is an error",
        (*_ERRORS, *_rows("an_unknown_tool_prompt_or_resource_is_invalid_params"), *_TABLE),
        "host: mcp 2.3.0 itself answers a tool of nobody's with isError, not with -32602",
    ),
    Requirement(
        "S29",
        "elicitation: statefulness; identifying the user",
        "state is protected and bound to its user, who is known from authorization, not from what a client claims",
        (
            *_BOUND,
            *_rows(
                "client_info_is_optional_and_changes_nothing",
                "a_state_shows_nothing_of_answers_and_step_results_and_does_not_stand_for_a_caller",
                "logs_hold_no_answer_no_result_no_token_and_no_key",
            ),
        ),
    ),
    Requirement(
        "S30",
        "security best practices: state handle hijacking",
        "to hold a state is not to be somebody",
        (
            *_BOUND,
            *_rows("a_state_shows_nothing_of_answers_and_step_results_and_does_not_stand_for_a_caller"),
        ),
    ),
    # ------------------------------------------------------------------ streams, progress, cancellation
    Requirement(
        "S31",
        "streamable http: sending messages",
        "a question comes as JSON or as the last event of a stream; nothing follows it",
        (*_STREAM, *_QUIET),
    ),
    Requirement(
        "S32",
        "streamable http: sending messages",
        "a stream carries notifications of its request and then the response, never a request",
        (*_STREAM, *_official("server-stateless")),
    ),
    Requirement(
        "S33",
        "streamable http: sending messages",
        "a stream asks proxies not to buffer, and is not resumed",
        (*_STREAM, *_ORIGIN),
        "host: mcp 2.3.0 sends X-Accel-Buffering: no, no event ids, and ignores Last-Event-ID",
    ),
    Requirement(
        "S34",
        "cancellation; streamable http: disconnecting; stdio",
        "a hang-up or notifications/cancelled ends the work, and nothing is kept or sent; nonsense is ignored",
        (*_CANCELLED, *_of("test_misuse", "a_cancelled_step_is_thrown_into_the_flow_once")),
    ),
    Requirement(
        "S35",
        "cancellation",
        "a server sends no notifications/cancelled for a call",
        (*_rows("everything_a_server_sends_is_a_response_to_the_request"), *_STREAM),
    ),
    Requirement(
        "S36",
        "progress",
        "progress is reported for the request under way, by its token, and ends with its answer, questions included",
        (*_STREAM, *_QUIET),
        "author: that the numbers a step reports increase",
    ),
    Requirement(
        "S37",
        "logging",
        "no notifications/message unless the request gives a log level",
        (*_QUIET, *_STREAM, *_official("server-stateless")),
    ),
    # ------------------------------------------------------------------ elicitation
    Requirement(
        "E1",
        "elicitation: requests",
        "a message, and a mode: form or url",
        _rows("a_form_is_message_mode_and_a_flat_schema", "a_page_is_mode_message_and_url_without_an_elicitation_id"),
    ),
    Requirement(
        "E2",
        "elicitation: capabilities",
        "an empty elicitation capability means forms only; else each mode is declared by name",
        (
            *_GATED,
            *_of("test_replay", "a_question_the_client_cannot_be_asked_is_thrown_recorded_and_else_a_protocol_error"),
        ),
    ),
    Requirement("E3", "elicitation: capabilities", "a mode that is not declared is not used", _GATED),
    Requirement("E4", "elicitation: security", "a question is bound to the client and user it was put to", _BOUND),
    Requirement(
        "E5",
        "elicitation: form mode",
        "the schema of a form is a flat object of fields",
        (
            *_rows("a_form_is_message_mode_and_a_flat_schema", "a_form_that_is_not_flat_is_refused"),
            *_of("test_forms", "only_the_grammars_keywords_are_allowed_on_top"),
        ),
    ),
    Requirement(
        "E6",
        "elicitation: form mode, security",
        "a form does not ask for secrets; those go to a page",
        _rows("a_type_for_secrets_is_not_asked_in_a_form"),
        "author: a secret that is asked for as plain text cannot be told",
    ),
    Requirement(
        "E7",
        "elicitation: safe URL handling",
        "a form's texts hold no URL to click",
        _rows("what_we_add_to_a_forms_text_holds_no_url"),
        "author: messages, titles, descriptions and patterns are sent as written",
    ),
    Requirement(
        "E8",
        "elicitation: requested schema",
        "fields are of the closed list of schemas and their keywords",
        _of(
            "test_forms",
            "a_model_is_sent_in_the_grammar_and_nothing_else",
            "a_raw_form_outside_the_grammar_is_refused_and_inside_is_sent_as_it_is",
            "a_raw_form_is_sent_as_it_is",
        ),
    ),
    Requirement(
        "E9",
        "elicitation: responses",
        "an accepted form's content holds texts, numbers, fractions too, booleans and lists of texts",
        (
            *_rows("an_answer_may_be_text_number_boolean_or_a_list_of_texts"),
            *_of("test_tokens", "an_entry_outside_the_schema_is_invalid_params_and_nothing_is_lost"),
        ),
    ),
    Requirement(
        "E10",
        "elicitation: URL mode; changelog",
        "a page is asked for with mode, message and url alone; the id, its notification and error -32042 are gone",
        _rows(
            "a_page_is_mode_message_and_url_without_an_elicitation_id",
            "an_error_of_the_sdk_raised_in_a_flow_never_becomes_the_retired_code",
            "no_other_error_code_is_in_the_source",
        ),
    ),
    Requirement(
        "E11",
        "elicitation: URL mode",
        "accept means consent to open the page, not that anything was done there",
        _rows("consent_to_open_a_page_is_not_taken_for_its_end"),
    ),
    Requirement(
        "E12",
        "elicitation: safe URL handling; phishing",
        "a page's URL signs nobody in, and whoever opens it is checked to be the one who was asked",
        _rows(
            "a_page_is_a_web_address_that_signs_nobody_in",
            "a_page_can_tell_whether_the_one_who_opened_it_is_the_one_who_calls",
        ),
        "author: the page's own check, what else the URL says of a person, and https",
    ),
    Requirement(
        "E13",
        "elicitation: URL mode, security",
        "third-party credentials do not pass through the client; a page does not authorize the MCP client itself",
        _of("test_tokens", "what_a_type_says_is_secret_is_not_put_into_a_token"),
        "author: a step's result travels through the client, sealed; a step returns a name for a credential, and a "
        "credential that is plain text is not recognised",
    ),
    Requirement(
        "E15",
        "elicitation: response actions",
        "accept, decline and cancel are three answers; content beside the last two means nothing",
        (
            *_rows("accept_decline_cancel_and_no_answer_are_four_things"),
            *_of("test_replay", "an_uncaught_decline_or_cancel_ends_the_call_readably"),
        ),
    ),
    # ------------------------------------------------------------------ capability gating
    Requirement(
        "G1",
        "basic: error codes",
        "a missing capability is -32021 with requiredCapabilities as an object, HTTP 400",
        (
            *_GATED,
            *_EARLY,
            *_of("adapters/test_mcp", "a_protocol_error_reaches_the_client_with_its_data"),
            *_official("server-stateless"),
        ),
    ),
    Requirement(
        "G2",
        "mrtr: server requirement 7; basic: error codes",
        "an optional question is left out; for a needed one the call is refused, before anybody is asked in vain",
        (
            *_rows(
                "an_optional_question_is_left_out_and_a_needed_one_is_the_error",
                "nobody_is_asked_in_vain_when_a_question_of_the_same_gather_cannot_be_asked",
            ),
            *_official("input-required-result-capability-check", "server-stateless"),
        ),
    ),
    Requirement(
        "G3",
        "basic: statelessness",
        "capabilities are looked at in each request anew",
        _rows(
            "capabilities_are_looked_at_anew_in_every_round_and_a_refused_round_can_be_sent_again",
            "a_question_left_out_of_a_gather_is_asked_once_it_can_be",
        ),
    ),
    # ------------------------------------------------------------------ errors
    Requirement("X1", "basic: error codes", "what is no JSON is -32700, HTTP 400", _EARLY, "host: parses the body"),
    Requirement(
        "X2",
        "basic: error codes",
        "what is no request, a batch, or has id null is -32600, HTTP 400",
        (*_TABLE, *_EARLY),
    ),
    Requirement(
        "X3",
        "basic: _meta",
        "a request without version or capabilities in _meta is -32602, HTTP 400",
        (*_TABLE, *_EARLY, *_official("server-stateless")),
    ),
    Requirement(
        "X4",
        "streamable http: headers",
        "a header that is missing, differs from the body or does not decode is -32020, HTTP 400",
        _EARLY,
        "host: compares headers with the body before a flow is reached",
    ),
    Requirement("X5", "basic: error codes", "a missing capability is -32021, HTTP 400", (*_GATED, *_EARLY)),
    Requirement(
        "X6",
        "versioning",
        "an unknown version is -32022 with supported and requested, HTTP 400",
        (*_of("adapters/test_jsonrpc", "an_unknown_version_names_the_known_ones"), *_EARLY),
    ),
    Requirement(
        "X7",
        "basic: error codes",
        "an unknown method is -32601, HTTP 404",
        (*_TABLE, *_EARLY, *_official("server-stateless")),
    ),
    Requirement(
        "X8",
        "tools, prompts, resources: error handling",
        "an unknown tool, prompt or resource is -32602",
        _rows("an_unknown_tool_prompt_or_resource_is_invalid_params"),
        "host: mcp 2.3.0 itself answers a tool of nobody's with isError, and such a prompt with -32603",
    ),
    Requirement(
        "X9",
        "mrtr: server requirement 4",
        "a state that does not verify is an error, -32602 here",
        (*_REFUSED, *_BOUND),
    ),
    Requirement("X10", "mrtr: error handling", "answers outside the schema are an error, -32602 here", _ANSWERS),
    Requirement(
        "X11",
        "mrtr: error handling",
        "answers that lack a key are no error: it is asked again, HTTP 200",
        (*_rows("what_is_missing_is_asked_again_and_what_came_is_kept"), *_ANSWERS),
    ),
    Requirement(
        "X12",
        "elicitation: form mode, security",
        "content that does not fit its form is not taken: it is asked again with the reason",
        (
            *_ANSWERS,
            *_of("test_replay", "a_wrong_answer_is_asked_again_with_the_reason_and_then_ends_the_call"),
        ),
    ),
    Requirement(
        "X13", "basic: error codes", "a fault of the server's own is -32603 where there is no result for it", _ERRORS
    ),
    Requirement(
        "X14",
        "streamable http: security",
        "a request of an unknown origin is HTTP 403",
        _ORIGIN,
        "host: mcp 2.3.0 checks Origin and Host of servers on localhost, and of others as it is configured",
    ),
    Requirement(
        "X15",
        "streamable http: sending messages",
        "a notification is HTTP 202 without a body",
        (*_ORIGIN, *_of("adapters/test_jsonrpc", "a_notification_gets_no_answer")),
    ),
    Requirement(
        "X16",
        "streamable http: sending messages",
        "GET and DELETE are HTTP 405",
        _ORIGIN,
        "host: answers every verb but POST",
    ),
    Requirement(
        "X17",
        "basic: error codes",
        "retired, undefined and reserved codes are never sent",
        _rows(
            "no_other_error_code_is_in_the_source",
            "an_error_of_the_sdk_raised_in_a_flow_never_becomes_the_retired_code",
        ),
    ),
    # ------------------------------------------------------------------ _meta, transports, discovery
    Requirement(
        "M1",
        "basic: _meta",
        "version and capabilities are demanded of each request; the client's name is not",
        (
            *_TABLE,
            *_rows("client_info_is_optional_and_changes_nothing"),
            *_official("server-stateless"),
        ),
    ),
    Requirement(
        "M2",
        "basic: _meta",
        "the server's name is in _meta, not in the body",
        _rows("every_result_says_its_type_and_names_the_server_interim_ones_too"),
    ),
    Requirement(
        "M3",
        "basic: _meta",
        "nothing depends on what a client calls itself",
        _rows("client_info_is_optional_and_changes_nothing"),
    ),
    Requirement(
        "M4",
        "basic: _meta",
        "own keys in _meta have a prefix that is not reserved; there are none, and a client's are ignored",
        _rows(
            "every_result_says_its_type_and_names_the_server_interim_ones_too",
            "unknown_members_are_ignored_wherever_a_client_may_put_them",
        ),
    ),
    Requirement(
        "H1",
        "streamable http: headers",
        "one endpoint takes one request by POST, with its method and name in headers, in every round",
        (*_EARLY, *_ORIGIN, *_rows("tools_prompts_and_resources_ask_and_then_complete")),
        "host: routes and compares the headers",
    ),
    Requirement(
        "H2",
        "streamable http: headers",
        "names of headers match in any case, values in their own; blanks around a value do not count",
        _EARLY,
        "host: the HTTP server trims values",
    ),
    Requirement(
        "H3",
        "streamable http: headers",
        "a value in base64 is decoded before it is compared",
        _EARLY,
        "host: decodes the value",
    ),
    Requirement(
        "H4",
        "streamable http: headers from arguments",
        "arguments a schema marks x-mcp-header must be in headers too, in every round",
        _rows("a_mirrored_argument_is_checked_in_every_round"),
    ),
    Requirement(
        "H5",
        "streamable http: security",
        "Origin is checked; sessions are neither made nor followed",
        _ORIGIN,
        "host: validates Origin and never sends Mcp-Session-Id to a client of 2026-07-28",
    ),
    Requirement(
        "H6",
        "stdio",
        "over stdio there is one message a line and nothing else",
        _of("test_end_to_end", "a_flow_is_served_over_stdio_too"),
    ),
    Requirement(
        "R1",
        "server/discover",
        "discovery names versions and capabilities; there is none for questions",
        (
            *_rows("server_discover_names_version_and_offers_and_has_no_capability_for_questions"),
            *_of("adapters/test_jsonrpc", "discover_names_the_version_and_the_server"),
            *_official("server-stateless"),
        ),
    ),
)
