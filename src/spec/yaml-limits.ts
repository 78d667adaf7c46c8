/** Maximum length of a text that is parsed as YAML. */
export const longestYaml = 2 * 1024 * 1024
