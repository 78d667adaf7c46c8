/** The event's type of a transition into `state`: what happened, where the state alone would not say it. */
export function eventType(entity: string, state: string): string {
  if (entity === 'task' && state === 'assigned') return 'task.claimed'
  if (state === 'running') return `${entity}.started`
  return `${entity}.${state}`
}
