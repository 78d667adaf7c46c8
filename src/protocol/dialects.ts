/** The systems whose words Pawl speaks: each one's routes under `/dialects/<name>`, and `--vocabulary` in the CLI. */
export const dialectNames = ['marie', 'jobnik', 'falconeri', 'pipeline', 'jsm'] as const
export type DialectName = (typeof dialectNames)[number]
