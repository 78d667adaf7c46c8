import { readdir } from 'node:fs/promises'
import { defineTask } from 'pawl'
import { z } from 'zod'

export const listFiles = defineTask({
  type: 'list-files',
  payload: z.object({ folder: z.string() }),
  handler: async ({ folder }) => ({ folder, files: (await readdir(folder)).sort() }),
})

export const resize = defineTask({
  type: 'resize',
  payload: z.object({ file: z.string(), width: z.int().min(1).default(200) }),
  handler: async ({ file, width }) => ({ picture: `${width}px-${file}`, width }),
})

export const publish = defineTask({
  type: 'publish',
  payload: z.object({ title: z.string(), pictures: z.array(z.object({ picture: z.string() })) }),
  handler: async ({ title, pictures }) => `${title}: ${pictures.map(({ picture }) => picture).join(', ')}`,
})
