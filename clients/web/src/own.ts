/**
 * What a map has under a name that somebody else chose. Ids are any text (SPEC 2.1): `__proto__` and `constructor`
 * too, which every object seems to have.
 */
export const own = <T>(map: { readonly [name: string]: T }, name: string): T | undefined =>
  Object.hasOwn(map, name) ? map[name] : undefined;
