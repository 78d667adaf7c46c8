import { cel, defineJob, type JobBuilder } from 'pawl'
import { listFiles, publish, resize } from './tasks.ts'

interface Album {
  title: string
  folder: string
}

export const thumbnails = defineJob('thumbnails', ({ input, stage, each }: JobBuilder<Album>) => {
  const list = stage('list', listFiles, { folder: input.folder })
  const small = each('resize', resize, list.output.files, file => ({ file, width: 100 }), { parallelism: 4 })
  stage('publish', publish, { title: input.title, pictures: small.output }, { when: cel`size(${small.output}) > 0` })
})
