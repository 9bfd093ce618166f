//#region src/indexeddb.ts
const TABLE = "kept";
const done = (request) => new Promise((resolve, reject) => {
	request.onsuccess = () => resolve(request.result);
	request.onerror = () => reject(request.error);
});
/** Open, or make, the database of this name when it is first needed. */
function indexedDbStore(name = "midstream", factory = indexedDB) {
	let opened;
	const open = () => {
		const request = factory.open(name, 1);
		request.onupgradeneeded = () => request.result.createObjectStore(TABLE);
		const opening = done(request);
		opening.then((database) => {
			const forget = () => {
				opened = void 0;
			};
			database.onclose = forget;
			database.onversionchange = () => {
				database.close();
				forget();
			};
		}, () => {
			opened = void 0;
		});
		return opening;
	};
	const read = async (ask) => {
		opened ??= open();
		return done(ask((await opened).transaction(TABLE).objectStore(TABLE)));
	};
	const write = async (change) => {
		opened ??= open();
		const transaction = (await opened).transaction(TABLE, "readwrite");
		change(transaction.objectStore(TABLE));
		await new Promise((resolve, reject) => {
			transaction.oncomplete = () => resolve();
			transaction.onabort = () => reject(transaction.error);
		});
	};
	return {
		read: (key) => read((table) => table.get(key)),
		readAll: (prefix) => read((table) => table.getAll(IDBKeyRange.bound(prefix, `${prefix}\uffff`))),
		write: (key, value) => write((table) => table.put(value, key)),
		remove: (key) => write((table) => table.delete(key))
	};
}
//#endregion
export { indexedDbStore };
