/** A store in IndexedDB: it outlives the page, and all tabs of the origin share it. */
import { keepIn, keysOf, type TextMap } from "./client/keeper.js";
import type { Store } from "./client/store.js";

const TABLE = "kept";

const done = <T>(request: IDBRequest<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

/** A store in the database of this name. `place` names whose it is: give each server, and each user, another. */
export const indexedDbStore = (place = "", name = "midstream"): Store => keepIn(indexedDbMap(name), place);

/**
 * Forget all that is stored in a place: its user has logged out, say. Close the client first, or better do it when
 * the next page is loaded: what is still being written would come back. @throws DOMException it could not be done
 */
export const forgetStored = (place = "", name = "midstream"): Promise<void> =>
  Promise.all(keysOf(place).map(indexedDbMap(name).removeAll)).then(() => undefined);

/** The map beneath it; the database is opened, or made, when it is first needed. */
export function indexedDbMap(
  name: string,
  factory: IDBFactory = indexedDB,
): TextMap & { removeAll(prefix: string): Promise<void> } {
  let opened: Promise<IDBDatabase> | undefined;

  const open = (): Promise<IDBDatabase> => {
    const request = factory.open(name, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(TABLE);
    const opening = done(request);
    opening.then(
      (database) => {
        const forget = () => {
          opened = undefined;
        };
        database.onclose = forget;
        // another tab deletes the database, or knows a newer form of it: it must not wait for this one
        database.onversionchange = () => {
          database.close();
          forget();
        };
      },
      () => {
        opened = undefined; // the next call tries again
      },
    );
    return opening;
  };

  const read = async <T>(ask: (table: IDBObjectStore) => IDBRequest<T>): Promise<T> => {
    opened ??= open();
    return done(ask((await opened).transaction(TABLE).objectStore(TABLE)));
  };

  const write = async (change: (table: IDBObjectStore) => IDBRequest): Promise<void> => {
    opened ??= open();
    const transaction = (await opened).transaction(TABLE, "readwrite");
    change(transaction.objectStore(TABLE));
    // a page that is being left lives not long enough to learn that the change was made, which would commit it
    transaction.commit();
    await new Promise<void>((resolve, reject) => {
      transaction.oncomplete = () => resolve();
      transaction.onabort = () => reject(transaction.error);
    });
  };

  // the last code unit that there is: all keys that begin so lie below
  const beginning = (prefix: string) => IDBKeyRange.bound(prefix, `${prefix}\uffff`);

  return {
    read: (key) => read((table): IDBRequest<unknown> => table.get(key)),
    readAll: (prefix) => read((table): IDBRequest<unknown[]> => table.getAll(beginning(prefix))),
    write: (key, value) => write((table) => table.put(value, key)),
    remove: (key) => write((table) => table.delete(key)),
    removeAll: (prefix) => write((table) => table.delete(beginning(prefix))),
  };
}
