export { type CheckReport, printCheck, printReport, type Report } from './report.ts'
export { type ConformanceOptions, runConformance } from './run.ts'
