/** The secrets that a process of Pawl was started with, kept from the commands that it runs as the same user. */
import type { Settled } from '../config/resolve.ts'
import { type Setting, type SettingName, settings } from '../config/settings.ts'
import { eraseSecrets } from '../machine/erase-secrets.ts'

const secretSettings = (Object.keys(settings) as SettingName[]).filter(name => (settings[name] as Setting).secret)

/** The variables of the environment that hold a key or the address of a database. */
export const secretVariables: readonly string[] = secretSettings.flatMap(name => (settings[name] as Setting).env ?? [])

/** Removes them from what other programs see of this process. False: it cannot be done here. */
export function hideOwnSecrets({ values }: Settled): boolean {
  const given = secretSettings.flatMap(name => (values[name] as string | undefined) ?? [])
  return eraseSecrets({ variables: secretVariables, values: given })
}

/** The environment of a process that is told its secrets in another way. */
export function withoutSecrets(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !secretVariables.includes(name)))
}
