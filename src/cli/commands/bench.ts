import { command } from '../command.ts'

/** The peers that it measures against are not part of the package, so it runs from a clone only. */
export const bench = command({
  name: 'bench',
  says: 'Say how to measure Pawl beside its peers.',
  async run() {
    const lines = ['In a clone of the repository: npm run bench', 'Figures of earlier runs are in bench/RESULTS.md.']
    return { data: { run: 'npm run bench', results: 'bench/RESULTS.md' }, show: () => lines }
  },
})
