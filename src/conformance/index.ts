export { printCheck, printReport } from './report.ts'
export { runConformance } from './run.ts'
