/** Sessions for the AI SDK: a transport for `useChat`, a hook that keeps it in step, and messages as it has them. */
export { type MessageMetadata, toUIMessage, toUIMessages, toUserParts } from "./messages.js";
export { type ChatHelpers, useSyncedChat } from "./synced.js";
export { MidstreamChatTransport } from "./transport.js";
