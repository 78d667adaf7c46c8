// Compiled with the tests and never run. Each line under `@ts-expect-error` must not compile.
import { z } from 'zod'
import { cel, defineJob, defineTask, type JobBuilder, type JobSpec, type Ref, type Stage } from '../../src/index.ts'

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
const isTrue = <_ extends true>() => {}

const list = defineTask({
  type: 'list',
  payload: z.object({ folder: z.string(), recursive: z.boolean().optional() }),
  handler: () => ({ files: ['a.png'], found: { count: 1 }, at: new Date() }),
})
const resize = defineTask({
  type: 'resize',
  payload: z.object({ file: z.string(), width: z.number() }),
  handler: ({ file }) => ({ file, bytes: 5 }),
})
const report = defineTask({ type: 'report', handler: async (sizes: number[]) => sizes.length })

interface Input {
  folder: string
  width?: number
}

export const job = defineJob('job', ({ input, stage, each, value, gate }: JobBuilder<Input>) => {
  const listed = stage('list', list, { folder: input.folder })
  isTrue<Equal<typeof listed.output.files, Ref<string[]>>>()
  isTrue<Equal<typeof listed.output.at, Ref<string>>>()
  const resized = each('resize', resize, listed.output.files, file => ({ file, width: 200 }), { parallelism: 4 })
  isTrue<Equal<typeof resized, Stage<{ file: string; bytes: number }[]>>>()
  each('again', resize, ['a.png', 'b.png'], file => ({ file, width: input.width }), { after: [listed] })
  const sizes = value('sizes', cel<number[]>`${resized.output}.map(one, one.bytes)`)
  const review = gate('review', { ask: 'Publish?' }, { when: cel`size(${sizes.output}) > 1` })
  const reported = stage('report', report, sizes.output, { after: [review], retry: { attempts: 2 } })
  isTrue<Equal<typeof reported.output, Ref<number>>>()
  stage('plain', report, [1, 2, listed.output.found.count], { after: [] })

  // @ts-expect-error: the payload lacks its folder
  stage('a', list, { recursive: true })
  // @ts-expect-error: a list of names is no name
  stage('b', list, { folder: listed.output.files })
  // @ts-expect-error: the output has no such property
  stage('c', list, { folder: listed.output.folders })
  // @ts-expect-error: a name is no number
  each('d', resize, listed.output.files, file => ({ file, width: file }))
  // @ts-expect-error: only a list has elements
  each('e', resize, listed.output.found, file => ({ file, width: 1 }))
  // @ts-expect-error: the payload lacks its width
  each('f', resize, listed.output.files, file => ({ file }))
  // @ts-expect-error: the outputs of many tasks are a list
  stage('g', list, { folder: resized.output.file })
  // @ts-expect-error: a condition is true or false
  stage('h', list, { folder: 'x' }, { when: listed.output.found.count })
  // @ts-expect-error: a stage follows stages, not names
  stage('i', list, { folder: 'x' }, { after: ['list'] })
  // @ts-expect-error: no such option
  stage('j', list, { folder: 'x' }, { paralelism: 4 })
  // @ts-expect-error: the input has no such property
  stage('k', list, { folder: input.place })
})

isTrue<Equal<ReturnType<typeof job>, JobSpec>>()
job({ folder: 'x' })
// @ts-expect-error: the input lacks its folder
job({ width: 5 })
// @ts-expect-error: the input is missing
job()
const without = defineJob('without', ({ stage }) => void stage('list', list, { folder: 'x' }), { priority: 5 })
without()
// @ts-expect-error: no such option of a job
defineJob('wrong', () => {}, { priorities: 5 })
