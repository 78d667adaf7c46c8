/**
 * The flags of Node for threads: none. By default a thread gets the flags of the process, and fails to start with some of
 * them (`--input-type`) or runs the preloaded modules of the application again (`--import`).
 */
export const threadFlags: string[] = []
