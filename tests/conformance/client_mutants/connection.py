"""Mutants of what keeps a replica equal: prompts, connections, the list (SPEC 3, 4.7, 4.8, 11)."""

from tests.conformance.client_mutants.mutant import Edit, Mutant
from tests.conformance.client_mutants.subscribing import SUBSCRIBING

LINK = "midstream.client.link"
RECONNECT = "midstream.client.reconnect"
CALLS = "midstream.client.calls"
EXCHANGE = "midstream.client.exchange"
PROMPTS = "midstream.client.prompts"
CREDENTIALS = "midstream.client.credentials"
TRANSPORT = "midstream.client.transport"
SESSIONS = "midstream.client.sessions"
LISTING = "midstream.client.listing"
CHUNKS = "midstream.protocol.chunks"
CODEC = "midstream.protocol.codec"

SENDING = (
    Mutant(
        "prompt_with_a_new_id",
        "4.7",
        "sends a prompt again under another id",
        "prompting.again",
        (
            Edit(
                CALLS,
                "        undone = (*self._urgent",
                "        for call in self._in_flight.values():\n"
                '            if call.method == "prompt":\n'
                "                again = getattr(call.params, 'message_id') + '_again'\n"
                "                call.params = msgspec.structs.replace(call.params, message_id=again)\n"
                "        undone = (*self._urgent",
            ),
        ),
    ),
    Mutant(
        "created_with_a_new_key",
        "7.11",
        "makes a session under another key when the first call was not answered",
        "subscribing.created_once",
        (
            Edit(
                CALLS,
                "        undone = (*self._urgent",
                "        for call in self._in_flight.values():\n"
                '            if call.method == "sessions.create":\n'
                "                call.params = msgspec.structs.replace(call.params, key='another')\n"
                "        undone = (*self._urgent",
            ),
        ),
    ),
    Mutant(
        "lost_calls_succeed",
        "4.7",
        "takes a call whose answer was lost for one that was carried out",
        "prompting.stop",
        (
            Edit(
                CALLS,
                "        undone = (*self._urgent",
                "        from midstream.protocol.calls import StopResult\n"
                "        for call in [one for one in self._in_flight.values() if one.method == 'stop']:\n"
                "            call.reply(StopResult(stopped=True, cancelled=[], reason='stopped'))\n"
                "            del self._in_flight[call.id]\n"
                "        undone = (*self._urgent",
            ),
        ),
    ),
    Mutant(
        "prompt_forgotten",
        "4.7",
        "does not send a prompt again whose answer was lost",
        "prompting.again",
        (
            Edit(
                PROMPTS,
                'self._exchange.start("prompt", prompt, reply, lane=prompt.session_id, repeatable=True)',
                'self._exchange.start("prompt", prompt, reply, lane=prompt.session_id, repeatable=False)',
            ),
        ),
    ),
    Mutant(
        "retryable_not_obeyed",
        "11.1",
        "takes an error that may pass for a refusal",
        "prompting.unknown_errors",
        (
            Edit(
                EXCHANGE,
                "answer.retryable and call.repeatable:",
                'answer.code == "overloaded" and call.repeatable:',
            ),
        ),
    ),
    Mutant(
        "handles_not_settled",
        "4.7",
        "does not ask for a turn that a reset left out",
        "prompting.after_a_reset",
        (
            Edit(
                PROMPTS,
                "elif not progress.asking and (progress.turn is None or synced):",
                "elif not progress.asking and progress.turn is None:",
            ),
        ),
    ),
    Mutant(
        "chunks_too_long",
        "3.3",
        "sends longer messages than the server takes",
        "wire.own_chunks",
        (Edit(LINK, "        transport.chunk_bytes = welcome.limits.chunk_bytes\n", ""),),
    ),
    Mutant(
        "too_many_calls",
        "11.2",
        "has more calls under way than the server takes",
        "wire.calls_in_flight",
        (Edit(EXCHANGE, "self._table.take(self.limits.calls_in_flight)", "self._table.take(1_000)"),),
    ),
)

CONNECTING = (
    Mutant(
        "another_version",
        "4.1",
        "says hello with a version that is not 1",
        "wire.hello",
        (Edit(LINK, "Hello(PROTOCOL_VERSION, ", "Hello(PROTOCOL_VERSION + 1, "),),
    ),
    Mutant(
        "unknown_tag_is_fatal",
        "3.2",
        "ends the connection at a frame whose tag it does not know",
        "wire.unknown_tag",
        (
            Edit(
                CODEC,
                "if isinstance(refusal, UnknownFrame):",
                "if isinstance(refusal, UnknownFrame) and not data:",
            ),
        ),
    ),
    Mutant(
        "long_frames_refused",
        "3.3",
        "takes no frame above a quarter of a mebibyte",
        "wire.long_sync",
        (Edit(TRANSPORT, "MAX_FRAME_BYTES = 256 * 1024 * 1024", "MAX_FRAME_BYTES = 256 * 1024"),),
    ),
    Mutant(
        "gives_up_before_the_welcome",
        "4.7",
        "does not come back when a connection ends before its welcome",
        "reconnecting.unanswered_hello",
        (
            Edit(
                LINK,
                "            self._welcomed(transport, await _welcome(transport))\n",
                "            try:\n"
                "                welcome = await _welcome(transport)\n"
                "            except LinkEnded as ended:\n"
                "                raise LinkEnded(ended.why, IncompatibleServer(ended.why)) from ended\n"
                "            self._welcomed(transport, welcome)\n",
            ),
        ),
    ),
    Mutant(
        "comes_back_after_4504",
        "11.3",
        "comes back after a code that says not to",
        "reconnecting.final_codes",
        (Edit(RECONNECT, "FINAL_CODES = range(4500, 5000)", "FINAL_CODES = range(4500, 4504)"),),
    ),
    Mutant(
        "gives_up_on_unknown_codes",
        "11.3",
        "does not come back after a code that it does not know",
        "reconnecting.codes",
        (
            Edit(
                RECONNECT,
                "return close_code not in FINAL_CODES",
                "return close_code < 4007",
            ),
        ),
    ),
    Mutant(
        "never_backs_off",
        "4.7",
        "comes back after pauses that do not grow",
        "reconnecting.backoff",
        (
            Edit(
                RECONNECT,
                "bound = min(policy.backoff_limit_s, policy.backoff_s * 2.0 ** min(attempt, 64))",
                "bound = policy.backoff_s",
            ),
        ),
    ),
    Mutant(
        "goaway_ignored",
        "3.9",
        "comes back before the time that a goaway named",
        "reconnecting.goaway",
        (Edit(RECONNECT, "min(max(after_s, 0.0), self._policy.goaway_limit_s)", "0.0 * after_s"),),
    ),
    Mutant(
        "pings_not_answered",
        "3.5",
        "does not answer pings",
        "reconnecting.pings",
        (Edit(LINK, "transport.send_first(self._options.codec.encode(pong))", "del pong"),),
    ),
    Mutant(
        "silence_not_noticed",
        "3.5",
        "keeps a connection on which nothing comes",
        "reconnecting.silence",
        (
            Edit(
                RECONNECT,
                "if now >= self._received_at + 2 * self._heartbeat_s:",
                "if now >= self._received_at + 2_000 * self._heartbeat_s:",
            ),
        ),
    ),
    Mutant(
        "listens_only",
        "3.5",
        "sends no ping while it receives",
        "reconnecting.speaks",
        (Edit(RECONNECT, "if asks or now >= self._spoke_at + self._heartbeat_s:", "if asks:"),),
    ),
    Mutant(
        "unreadable_frame_skipped",
        "3.2",
        "goes on after a frame that it could not read",
        "wire.not_readable",
        (
            Edit(
                TRANSPORT,
                'raise LinkEnded(f"the server sent what cannot be read: {error}", final) from error',
                "del final\n            return None",
            ),
        ),
    ),
    Mutant(
        "chunks_mixed",
        "3.3",
        "joins the pieces of two frames",
        "wire.chunks_of_two",
        (
            Edit(
                CHUNKS,
                "joined = self._open.get(chunk.n)",
                "joined = next(iter(self._open.values()), None)",
            ),
        ),
    ),
)

TOKENS = (
    Mutant(
        "token_not_renewed",
        "4.7",
        "lets its token end",
        "tokens.renewed",
        (Edit(LINK, "if token_ms is not UNSET and self._credentials.is_renewable:", "if token_ms == 0:"),),
    ),
    Mutant(
        "expiry_is_a_refusal",
        "11.3",
        "takes a token that ended for one that is not accepted",
        "tokens.expired",
        (Edit(CREDENTIALS, "if code == TOKEN_EXPIRED:", "if code == 0:"),),
    ),
    Mutant(
        "unauthorized_for_ever",
        "11.3",
        "comes back however often its tokens are refused",
        "tokens.unauthorized",
        (Edit(CREDENTIALS, 'if self._refusals == 1 else "never"', 'if self._refusals == 1 else "later"'),),
    ),
)

LISTS = (
    Mutant(
        "list_upside_down",
        "4.8",
        "shows the session first that changed longest ago",
        "listing.changes",
        (
            Edit(
                LISTING,
                "(-session.updated_at, session.session_id)",
                "(session.updated_at, session.session_id)",
            ),
        ),
    ),
    Mutant(
        "list_not_replaced",
        "4.8",
        "keeps what it knew of sessions when a watch is answered",
        "listing.again",
        (Edit(LISTING, "before, self._known = self._known, {}", "before = self._known"),),
    ),
    Mutant(
        "older_in_the_list",
        "4.8",
        "takes an older copy of a session into its list",
        "listing.older",
        (Edit(LISTING, "known.revision >= session.revision:", "known == session:"),),
    ),
    Mutant(
        "page_over_news",
        "4.8",
        "brings back by a page what a frame removed",
        "listing.pages",
        (Edit(LISTING, "if page.since.get(item.session_id, 0) < item.revision:", "if item.revision:"),),
    ),
    Mutant(
        "archived_shown",
        "4.8",
        "keeps an archived session in its list",
        "listing.archived",
        (
            Edit(
                LISTING,
                "if (session.archived_at is not UNSET) != self._archived:",
                "if session.archived_at == 1:",
            ),
        ),
    ),
    Mutant(
        "incomplete_ignored",
        "4.8",
        "does not watch again when something was left out",
        "listing.incomplete",
        (Edit(SESSIONS, "if changes.incomplete:", "if changes is None:"),),
    ),
)

CONNECTION = (*SUBSCRIBING, *SENDING, *CONNECTING, *TOKENS, *LISTS)
