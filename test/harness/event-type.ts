/** The event type of a transition into `state`. If the state is ambiguous, the type names the move. */
export function eventType(entity: string, state: string): string {
  if (entity === 'task' && state === 'assigned') return 'task.claimed'
  if (state === 'running') return `${entity}.started`
  return `${entity}.${state}`
}
