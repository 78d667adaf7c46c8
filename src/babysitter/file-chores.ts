/** What is to be done with files: inputs to be found, outputs to be put in their places, leftovers to be removed. */
import { listInputs } from '../engine/files/list-inputs.ts'
import { promoteFiles, sweepFiles } from '../engine/files/promote.ts'
import { sweepStagings } from '../engine/files/sweep.ts'
import type { Chore } from './chore.ts'

export const findInputs: Chore = {
  name: 'find-inputs',
  everySeconds: 1,
  bell: ({ fileSignal }) => fileSignal,
  run: context => listInputs(context),
}

export const putInPlace: Chore = {
  name: 'put-in-place',
  everySeconds: 1,
  bell: ({ fileSignal }) => fileSignal,
  run: context => promoteFiles(context),
}

/** Uploads of attempts that did not win, and what zombies upload after they have lost. */
export const sweepUploads: Chore = {
  name: 'sweep-uploads',
  everySeconds: 10,
  async run(context) {
    const { swept } = await sweepFiles(context)
    const { strays } = await sweepStagings(context)
    return { swept, strays }
  },
}
