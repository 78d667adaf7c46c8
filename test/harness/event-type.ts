/** The event type of a transition into `state`. Where the state alone would be ambiguous, it names what happened. */
export function eventType(entity: string, state: string): string {
  if (entity === 'task' && state === 'assigned') return 'task.claimed'
  if (state === 'running') return `${entity}.started`
  return `${entity}.${state}`
}
