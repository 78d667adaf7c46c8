/** The secrets that a process of Pawl was started with, kept from the commands that it runs as the same user. */
import type { Settled } from '../config/resolve.ts'
import { type Setting, type SettingName, settings } from '../config/settings.ts'
import { eraseSecrets } from '../machine/erase-secrets.ts'

const secretSettings = (Object.keys(settings) as SettingName[]).filter(name => (settings[name] as Setting).secret)

/** The variables of the environment that hold a key or the address of a database. */
const secretVariables: readonly string[] = secretSettings.flatMap(name => (settings[name] as Setting).env ?? [])

/** Removes the secrets from the environment and arguments that other programs see. False: this system does not allow it. */
export function hideOwnSecrets({ values }: Settled): boolean {
  const given = secretSettings.flatMap(name => (values[name] as string | undefined) ?? [])
  return eraseSecrets({ variables: secretVariables, values: given })
}

/** A copy of the environment for a child process that gets its secrets in another way. */
export function withoutSecrets(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !secretVariables.includes(name)))
}
