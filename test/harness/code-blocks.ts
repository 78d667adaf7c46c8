/** The code blocks of a page. The word after the language is a file name, or says how the block is run. */
export interface Block {
  readonly language: string
  readonly word: string
  readonly text: string
}

export function blocksOf(page: string): Block[] {
  return [...page.matchAll(/^```(\w+)(?: (\S+))?\n(.*?)^```$/gms)].map(([, language, word = '', body]) => ({
    language: language!,
    word,
    text: body!,
  }))
}

/** Code of another system, on the pages that compare it with Pawl. */
export const isBefore = ({ word }: Block) => word.startsWith('before')
