/** Problems with streams of events. */
export const streamProblems = {
  STREAMS_OF_KEY: {
    status: 429,
    means: 'This key has as many streams of events open as one key may have.',
    hint: 'Close one, or follow several jobs with one stream; --max-streams-per-key sets the limit.',
  },
  STREAMS_FULL: {
    status: 503,
    means: 'The server has as many streams of events open as it may have.',
    hint: 'Try again when others have closed theirs, or read pages of events; --max-streams sets the limit.',
  },
} as const
