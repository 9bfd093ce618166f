import { t as Environment } from "./environment-BFPM2oIX.js";

//#region src/browser.d.ts
/**
 * The page's environment. A page is hidden, frozen and restored without its sockets being told, so a client
 * looks after its connection when the page is seen again, when it thaws, and when the network changes; and
 * stores what it has when the page may be ended.
 */
declare function browserEnvironment(page?: Window): Environment;
//#endregion
export { browserEnvironment };