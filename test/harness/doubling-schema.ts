/** A small JSON Schema that stands for endless work: definitions in a chain, each of which applies the next one twice. */
export function doublingSchema(links: number) {
  const next = (link: number) => ({ $ref: `#/$defs/d${link}` })
  const chain = Array.from({ length: links }, (_, at) => [`d${at}`, { allOf: [next(at + 1), next(at + 1)] }])
  return { $defs: { ...Object.fromEntries(chain), [`d${links}`]: {} }, ...next(0) }
}
