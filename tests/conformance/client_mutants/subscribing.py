"""Mutants of subscriptions (SPEC 4.2, 4.7, 11.4)."""

from tests.conformance.client_mutants.mutant import Edit, Mutant

SUBSCRIPTION = "midstream.client.subscription"
HUB = "midstream.client.hub"
MERGE = "midstream.protocol.merge"

SUBSCRIBING = (
    Mutant(
        "live_too_early",
        "4.2",
        "takes its replica for the server's before the answer to subscribe",
        "subscribing.first",
        (
            Edit(
                SUBSCRIPTION,
                '        self._enter("syncing")\n        cursor =',
                '        self._enter("live")\n        cursor =',
            ),
        ),
    ),
    Mutant(
        "already_exists_is_fatal",
        "4.2",
        "gives up a session that was made meanwhile",
        "subscribing.not_found",
        (
            Edit(
                SUBSCRIPTION,
                "if isinstance(answer, MidstreamError) and not isinstance(answer, AlreadyExists):",
                "if isinstance(answer, MidstreamError):",
            ),
        ),
    ),
    Mutant(
        "asks_for_what_is_not_there",
        "11.1",
        "subscribes again and again to a session that does not exist",
        "subscribing.refused",
        (
            Edit(
                SUBSCRIPTION,
                'self.close(_problem("subscribe", answer))',
                "self._trouble(whole=False, patience=0)",
            ),
        ),
    ),
    Mutant(
        "frames_before_the_answer",
        "4.2",
        "applies frames of the session between subscribe and its answer",
        "subscribing.frames_before_the_answer",
        (
            Edit(
                SUBSCRIPTION,
                "subscription that ends\n        self._begin_anew()\n",
                "subscription that ends\n        self._generation += 1\n",
            ),
        ),
    ),
    Mutant(
        "old_channel_heard",
        "4.2",
        "takes frames of a channel that was replaced",
        "subscribing.old_channel",
        (Edit(HUB, "            del self._channels[channel]\n", "            del channel\n"),),
    ),
    Mutant(
        "late_answer_applied",
        "4.2",
        "takes the answer of a subscribe that came after the unsubscribe",
        "subscribing.left",
        (Edit(SUBSCRIPTION, "if generation != self._generation or isinstance", "if isinstance"),),
    ),
    Mutant(
        "no_cursor",
        "4.7",
        "subscribes without its cursor after a loss",
        "subscribing.all_again",
        (Edit(SUBSCRIPTION, "cursor = None if whole else self.replica.law.cursor()", "cursor = None"),),
    ),
    Mutant(
        "one_subscription_forgotten",
        "4.7",
        "does not subscribe to every session again after a loss",
        "subscribing.all_again",
        (
            Edit(
                HUB,
                "        for subscription in list(self._subscriptions.values()):\n"
                "            subscription.connected()",
                "        for subscription in list(self._subscriptions.values())[:1]:\n"
                "            subscription.connected()",
            ),
        ),
    ),
    Mutant(
        "second_gap_with_cursor",
        "4.7",
        "goes on with its cursor however often something is missing",
        "subscribing.second_gap",
        (Edit(SUBSCRIPTION, "whole=second or not gap.keep_cursor", "whole=not gap.keep_cursor"),),
    ),
    Mutant(
        "restart_with_cursor",
        "4.4",
        "keeps its cursor when it knows that its replica is wrong",
        "misfits.hole",
        (
            Edit(SUBSCRIPTION, "whole=second or not gap.keep_cursor", "whole=second"),
            Edit(MERGE, "if self.epoch is None or self.stage is Stage.LOST:", "if self.epoch is None:"),
        ),
    ),
    Mutant(
        "answer_ahead_ignored",
        "4.7",
        "does not notice that an answer shows a version that it has not",
        "paging.ahead",
        (Edit(SUBSCRIPTION, "law.version < version:", "law.version < 0:"),),
    ),
    Mutant(
        "reload_ends",
        "11.4",
        "takes every closed subscription for the end of the session",
        "subscribing.reload",
        (Edit(SUBSCRIPTION, "if frame.retryable:", "if not frame.code:"),),
    ),
    Mutant(
        "deleted_goes_on",
        "11.4",
        "subscribes again to a session that is gone",
        "subscribing.over",
        (Edit(SUBSCRIPTION, "if frame.retryable:", "if frame.code:"),),
    ),
    Mutant(
        "refusal_is_the_end",
        "11.1",
        "gives a session up when subscribe is put off",
        "subscribing.put_off",
        (
            Edit(
                SUBSCRIPTION,
                "elif isinstance(answer, MidstreamError) and answer.retryable:",
                'elif isinstance(answer, MidstreamError) and answer.code == "":',
            ),
        ),
    ),
    Mutant(
        "limit_too_high",
        "11.2",
        "asks for more messages than a page may have",
        "paging.limits",
        (
            Edit(
                SUBSCRIPTION,
                "limit=min(self._wish.limit, self._tools.exchange.limits.page_messages)",
                "limit=self._wish.limit",
            ),
        ),
    ),
)
