/** Chores for files: list inputs, move outputs to their final location, remove leftovers. */
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

/** Removes uploads of attempts that did not win, and late uploads of workers that had lost their lease. */
export const sweepUploads: Chore = {
  name: 'sweep-uploads',
  everySeconds: 10,
  async run(context) {
    const { swept } = await sweepFiles(context)
    const { strays } = await sweepStagings(context)
    return { swept, strays }
  },
}
