type Given<Fields> = { [Name in keyof Fields]?: Exclude<Fields[Name], null | undefined> };

/** The fields that have a value, neither undefined nor null, for types and SDKs that want no others. */
export const givenFields = <Fields extends object>(fields: Fields) =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value != null)) as Given<Fields>;
