import { command } from '../command.ts'

/** The benchmark needs the other job systems, which are not part of the package. So it runs only in a clone. */
export const bench = command({
  name: 'bench',
  summary: 'Show how to run the benchmark against other job systems.',
  async run() {
    const lines = [
      'To run the benchmark in a clone of the repository: npm run bench',
      'Results of earlier runs: bench/RESULTS.md',
    ]
    return { data: { run: 'npm run bench', results: 'bench/RESULTS.md' }, show: () => lines }
  },
})
