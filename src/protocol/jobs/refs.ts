/**
 * References to values that exist only when a job runs: its input and the outputs of stages. A reference has the type of
 * its value, and stands for CEL text: `list.output.files` for `stages.list.output.files`.
 */

declare const value: unique symbol

/** A value of type `Value` that is known when the job runs. Its properties are references too. */
export type Ref<Value> = { readonly [value]: Value } & (unknown extends Value ? unknown : Parts<Value>)

type Parts<Value> = Value extends readonly (infer Item)[]
  ? { readonly [index: number]: Ref<Item> }
  : Value extends object
    ? { readonly [Name in keyof Value]-?: Ref<Exclude<Value[Name], undefined>> }
    : unknown

/** A value in which any part may be a reference. */
export type Refs<Value> = unknown extends Value
  ? Value
  :
      | Ref<Value>
      | (Value extends readonly (infer Item)[]
          ? readonly Refs<Item>[]
          : Value extends object
            ? { readonly [Name in keyof Value]: Refs<Value[Name]> }
            : Value)

interface Expression {
  readonly text: string
  /** The stages that it reads. */
  readonly stages: ReadonlySet<string>
}

const expressions = new WeakMap<object, Expression>()

/** A reference for this CEL expression. */
export function refTo<Value>(text: string, stages: Iterable<string> = []): Ref<Value> {
  const expression = { text, stages: new Set(stages) }
  const ref: Ref<Value> = new Proxy(Object.freeze({}), {
    get(_, name) {
      if (typeof name === 'string') return refTo(`${text}${access(name)}`, stages)
      if (name === Symbol.toPrimitive) throw new TypeError(`${text} is only known when the job runs: use cel\`…\``)
      return undefined
    },
  }) as Ref<Value>
  expressions.set(ref, expression)
  return ref
}

/** Words that CEL reserves. */
const reserved = new Set(
  'as break const continue else false for function if import in let loop namespace null package return true var void while'.split(
    ' ',
  ),
)

function access(name: string): string {
  if (/^\d+$/.test(name)) return `[${name}]`
  return /^[A-Za-z_]\w*$/.test(name) && !reserved.has(name) ? `.${name}` : `[${JSON.stringify(name)}]`
}

/** The CEL text of a value, and the stages that it reads. */
export function toCel(written: unknown): Expression {
  const stages = new Set<string>()
  const text = textOf(written, stages)
  return { text, stages }
}

function textOf(written: unknown, stages: Set<string>): string {
  if (typeof written !== 'object' || written === null) return JSON.stringify(written ?? null)
  const expression = expressions.get(written)
  if (expression !== undefined) {
    for (const stage of expression.stages) stages.add(stage)
    return expression.text
  }
  if (Array.isArray(written)) return `[${written.map(item => textOf(item, stages)).join(', ')}]`
  if ('toJSON' in written) return textOf(JSON.parse(JSON.stringify(written)), stages)
  const entries = Object.entries(written).filter(([, inner]) => inner !== undefined)
  return `{${entries.map(([name, inner]) => `${JSON.stringify(name)}: ${textOf(inner, stages)}`).join(', ')}}`
}

/** Whether a value has a reference in it. */
export function hasRef(written: unknown): boolean {
  if (typeof written !== 'object' || written === null) return false
  return expressions.has(written) || Object.values(written).some(hasRef)
}

/**
 * A CEL expression with references and values in it. The type of its value is `Value`; the compiler cannot check it.
 *
 * @example
 * cel`${classify.output.kind} == "invoice" && size(${list.output.files}) > ${limit}`
 */
export function cel<Value = boolean>(texts: TemplateStringsArray, ...parts: readonly unknown[]): Ref<Value> {
  const { text, stages } = parts.map(toCel).reduce(
    (before, part, index) => ({
      text: before.text + part.text + texts[index + 1],
      stages: new Set([...before.stages, ...part.stages]),
    }),
    { text: texts[0]!, stages: new Set<string>() },
  )
  return refTo(`(${text})`, stages)
}
