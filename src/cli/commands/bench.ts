import { command } from '../command.ts'

/** The peers that it measures against are not part of the package, so it runs from a clone only. */
export const bench = command({
  name: 'bench',
  summary: 'Show how to benchmark Pawl beside other job systems.',
  async run() {
    const lines = ['In a clone of the repository: npm run bench', 'Figures of earlier runs are in bench/RESULTS.md.']
    return { data: { run: 'npm run bench', results: 'bench/RESULTS.md' }, show: () => lines }
  },
})
