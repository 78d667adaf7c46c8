/** Removes undefined properties, so that they do not override defaults when objects are merged. */
export function withoutUndefined<T extends object>(options: T): { [Name in keyof T]?: Exclude<T[Name], undefined> } {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as never
}
