/** Hides the secrets of a Pawl process from the commands that it runs as the same user. */
import type { ResolvedSettings } from '../config/resolve-settings.ts'
import { type Setting, type SettingName, settings } from '../config/settings.ts'
import { eraseSecrets } from '../machine/erase-secrets.ts'

const secretSettings = (Object.keys(settings) as SettingName[]).filter(name => (settings[name] as Setting).secret)

/** The environment variables with keys or database URLs. */
const secretVariables: readonly string[] = secretSettings.flatMap(name => (settings[name] as Setting).env ?? [])

/** Erases the secrets from the environment and arguments that other processes can read. False if the system prevents it. */
export function hideOwnSecrets({ values }: ResolvedSettings): boolean {
  const given = secretSettings.flatMap(name => (values[name] as string | undefined) ?? [])
  return eraseSecrets({ variables: secretVariables, values: given })
}

/** The environment for a child process that gets its secrets in another way. */
export function withoutSecrets(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !secretVariables.includes(name)))
}
