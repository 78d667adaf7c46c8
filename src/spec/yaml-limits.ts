/** The longest text that is read as YAML. */
export const longestYaml = 2 * 1024 * 1024
