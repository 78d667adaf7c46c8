/** Problems with what a server does only so much of at once: streams of events, and long specs. */
export const streamProblems = {
  STREAMS_OF_KEY: {
    status: 429,
    means: 'This key has reached its limit of open streams of events.',
    hint: 'Close one, or follow several jobs with one stream; --max-streams-per-key sets the limit.',
  },
  STREAMS_FULL: {
    status: 503,
    means: 'The server has reached its limit of open streams of events.',
    hint: 'Try again when others have closed theirs, or read pages of events; --max-streams sets the limit.',
  },
  SPECS_WAIT: {
    status: 503,
    means: 'Too many long specs in YAML wait to be read.',
    hint: 'Send it again in a moment, or as JSON, which takes less work.',
  },
} as const
