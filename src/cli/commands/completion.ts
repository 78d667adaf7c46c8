/** Shell completion scripts, generated from the table of commands. */
import { type Command, command, flagsOf } from '../command.ts'
import { invalidCommand } from '../parse.ts'

/** Possible continuations: subcommands or flags and, after a flag, its allowed values. */
interface Row {
  readonly after: string
  readonly words: readonly string[]
}

export function completionFor(others: readonly Command[]): Command {
  const self = command({
    name: 'completion',
    summary: 'Print the completion script of a shell: bash, zsh or fish.',
    details: `It completes commands, flags and their values. It also completes ids and names, for which it asks the server.
If the server does not answer at once, these are left out.

bash: eval "$(pawl completion bash)"
zsh:  eval "$(pawl completion zsh)"
fish: pawl completion fish | source`,
    parameters: { shell: 'bash, zsh or fish' },
    async run({ args }) {
      const script = Object.hasOwn(scripts, args.shell) ? scripts[args.shell as keyof typeof scripts] : undefined
      if (script === undefined)
        throw invalidCommand(`SHELL must be bash, zsh or fish, not ${JSON.stringify(args.shell)}.`)
      const text = script([...others, self])
      return { data: { script: text }, show: () => text.split('\n') }
    },
  })
  return self
}

const scripts = { bash, zsh, fish }

/** The next words for each prefix of a command. */
function wordRows(commands: readonly Command[]): Row[] {
  const next = new Map<string, Set<string>>()
  for (const { name } of commands) {
    const words = name.split(' ')
    for (const [index, word] of words.entries()) {
      const after = words.slice(0, index).join(' ')
      next.set(after, (next.get(after) ?? new Set()).add(word))
    }
  }
  return [...next].map(([after, words]) => ({ after, words: [...words] }))
}

const flagRows = (commands: readonly Command[]): Row[] =>
  commands.map(command => ({ after: command.name, words: Object.keys(flagsOf(command)).map(name => `--${name}`) }))

const valueRows = (commands: readonly Command[]): Row[] =>
  commands.flatMap(command =>
    Object.entries(flagsOf(command)).flatMap(([name, { words }]) =>
      words === undefined ? [] : [{ after: `${command.name}'*' --${name}`, words }],
    ),
  )

/** The longest first: a command whose name begins with another one must match before it. */
const cases = (rows: readonly Row[], anything = '') =>
  [...rows]
    .sort((one, other) => other.after.length - one.after.length)
    .map(({ after, words }) => `    '${after}'${anything}) found='${words.join(' ')}' ;;`)
    .join('\n')

/** The commands with an argument or a flag that the server completes. */
const asking = (commands: readonly Command[]): readonly string[] =>
  commands
    .filter(command => command.completes ?? Object.values(flagsOf(command)).some(({ completes }) => completes))
    .map(({ name }) => name)

/** Shell code for bash and zsh that sets $asks if the server may know what completes the word at the cursor. */
const findAsks = (commands: readonly Command[]) => `  if [ -z "$found" ] && [ "\${current#-}" = "$current" ]; then
    case "$typed" in ${asking(commands)
      .map(name => `'${name}'*`)
      .join('|')}) asks=1 ;; esac
  fi`

/** Shell code for bash and zsh that sets $found to the possible words at the cursor. */
function findWords(commands: readonly Command[]): string {
  return `  case "$typed $previous" in
${cases(valueRows(commands))}
  esac
  if [ -z "$found" ] && [ "\${current#-}" != "$current" ]; then case "$typed" in
${cases(flagRows(commands), '*')}
  esac; fi
  if [ -z "$found" ]; then case "$typed" in
${cases(wordRows(commands))}
  esac; fi`
}

function bash(commands: readonly Command[]): string {
  return `_pawl() {
  local found='' typed='' asks='' word index
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}"
  for ((index = 1; index < COMP_CWORD; index++)); do
    word="\${COMP_WORDS[index]}"
    [ "\${word#-}" = "$word" ] || break
    typed="\${typed:+$typed }$word"
  done
${findWords(commands)}
${findAsks(commands)}
  COMPREPLY=($(compgen -W "$found" -- "$current"))
  if [ -n "$asks" ]; then
    local before="\${COMP_WORDS[*]:1:COMP_CWORD-1}"
    COMPREPLY=()
    while read -r word _; do
      COMPREPLY+=("$word")
    done < <("\${COMP_WORDS[0]}" complete -- "$before" "$current" 2>/dev/null </dev/null)
  fi
}
complete -o default -F _pawl pawl`
}

function zsh(commands: readonly Command[]): string {
  return `_pawl() {
  local found='' typed='' asks='' word index current="\${words[CURRENT]}" previous="\${words[CURRENT-1]}"
  local -a known
  for ((index = 2; index < CURRENT; index++)); do
    word="\${words[index]}"
    [ "\${word#-}" = "$word" ] || break
    typed="\${typed:+$typed }$word"
  done
${findWords(commands)}
${findAsks(commands)}
  if [ -n "$asks" ]; then
    known=(\${(f)"$("\${words[1]}" complete -- "\${words[2,CURRENT-1]}" "$current" 2>/dev/null </dev/null)"})
  fi
  if [ -n "$found" ]; then compadd -- \${=found}
  elif [ \${#known} -gt 0 ]; then compadd -U -l -d known -- "\${(@)known%% *}"
  else _files; fi
}
(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
compdef _pawl pawl`
}

/** Variables that may be empty are quoted: unquoted, they would not be an argument at all. */
function fish(commands: readonly Command[]): string {
  const quoted = (text: string) => `'${text.replace(/['\\]/g, match => `\\${match}`)}'`
  const begins = (name: string) => quoted(`__pawl_typed ${name}`)
  const subcommands = wordRows(commands).map(
    ({ after, words }) => `complete -c pawl -f -n ${quoted(`__pawl_is ${after}`)} -a ${quoted(words.join(' '))}`,
  )
  const flags = commands.flatMap(command =>
    Object.entries(flagsOf(command)).map(([name, { kind, summary, words, completes, short }]) => {
      const value = kind === 'switch' ? '' : ' -r'
      const found = completes === undefined ? words?.join(' ') : '(__pawl_known)'
      const values = found === undefined ? '' : ` -f -a ${quoted(found)}`
      const letter = short === undefined ? '' : ` -s ${short}`
      return `complete -c pawl -n ${begins(command.name)} -l ${name}${letter}${value}${values} -d ${quoted(summary)}`
    }),
  )
  const known = commands.flatMap(({ name, completes }) =>
    completes === undefined ? [] : [`complete -c pawl -f -n ${begins(name)} -a '(__pawl_known)'`],
  )
  return `set -g __pawl_commands ${commands.map(({ name }) => quoted(name)).join(' ')}
function __pawl_words
  for word in (commandline -opc)[2..-1]
    string match -q -- '-*' $word; and break
    echo $word
  end
end
function __pawl_is
  set -l typed (__pawl_words)
  test "$typed" = "$argv"
end
function __pawl_typed
  set -l typed (__pawl_words)
  while set -q typed[1]; and not contains -- "$typed" $__pawl_commands
    set -e typed[-1]
  end
  test "$typed" = "$argv"
end
function __pawl_known
  set -l words (commandline -opc)
  set -l current (commandline -ct)
  set -l before $words[2..-1]
  command $words[1] complete -- "$before" "$current" 2>/dev/null </dev/null | string replace ' ' \\t
end
${subcommands.join('\n')}
${flags.join('\n')}
${known.join('\n')}`
}
