import { n as Store } from "./store-C5yLd7U3.js";

//#region src/indexeddb.d.ts
/** Open, or make, the database of this name when it is first needed. */
declare function indexedDbStore(name?: string, factory?: IDBFactory): Store;
//#endregion
export { indexedDbStore };