/** Sessions for assistant-ui: a runtime on its external store, a thread list, and messages as it has them. */
export { APPROVAL, QUESTION, toAnswers, toThreadMessage, toThreadMessages, toUserParts } from "./messages.js";
export { type RuntimeOptions, useMidstreamRuntime } from "./runtime.js";
export { type ThreadListOptions, useMidstreamThreadList } from "./thread_list.js";
