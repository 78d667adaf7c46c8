/** Shows an error with the text and the hint of its problem code. */
import { Alert } from '@mantine/core'
import { Problem, problems } from '../../../src/kernel/problem.ts'

export function textOf(error: unknown): { title: string; hint: string } {
  if (error instanceof Problem) {
    const { means, hint } = problems[error.code]
    return { title: means, hint }
  }
  return { title: 'The request failed.', hint: error instanceof Error ? error.message : String(error) }
}

export function Fault({ error }: { error: unknown }) {
  const { title, hint } = textOf(error)
  return (
    <Alert color="red" title={title} variant="light">
      {hint}
    </Alert>
  )
}
