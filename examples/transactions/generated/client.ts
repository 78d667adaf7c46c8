/**
 * The output of `prisma generate` for the schema below, shortened to what the example uses, because generating it takes
 * the command line of Prisma and a download. Your project has the complete one.
 */
import * as runtime from '@prisma/client/runtime/client'
import type { Order } from '../order.ts'

const inlineSchema = `
  generator client {
    provider = "prisma-client"
    output   = "./generated"
  }
  datasource db {
    provider = "postgresql"
  }
  model Order {
    id   Int    @id
    item String
    @@map("orders")
  }`

/** The types of Node do not declare its constructors. */
const Wasm = Reflect.get(globalThis, 'WebAssembly') as { Module: new (bytes: Uint8Array) => unknown }
const compiler = '@prisma/client/runtime/query_compiler_fast_bg.postgresql'

/** The fields and operations of the schema, as Prisma encodes them. */
const words = `
  where Order.findUnique Order.findUniqueOrThrow orderBy cursor Order.findFirst Order.findFirstOrThrow
  Order.findMany data Order.createOne Order.createMany Order.createManyAndReturn Order.updateOne
  Order.updateMany Order.updateManyAndReturn create update Order.upsertOne Order.deleteOne Order.deleteMany
  having _count _avg _sum _min _max Order.groupBy Order.aggregate AND OR NOT id item equals in notIn lt lte gt
  gte contains startsWith endsWith not set increment decrement multiply divide
`
const graph = `
  KwsQBRwAACIAMB0AAAQAEB4AACIAMB8CAAAAASABACQAIQEAAAABACABAAAAAQAgBRwAACIAMB0AAAQAEB4AACIAMB8CACMAISABACQAIQADAA
  AABAAgAwAABQAwBAAAAQAgAwAAAAQAIAMAAAUAMAQAAAEAIAMAAAAEACADAAAFADAEAAABACACHwIAAAABIAEAAAABAQgAAAkAIAIfAgAAAAEg
  AQAAAAEBCAAACwAwAQgAAAsAMAIfAgAqACEgAQArACECAAAAAQAgCAAADgAgAh8CACoAISABACsAIQIAAAAEACAIAAAQACACAAAABAAgCAAAEA
  AgAwAAAAEAIA8AAAkAIBAAAA4AIAEAAAABACABAAAABAAgBRUAACUAIBYAACYAIBcAACkAIBgAACgAIBkAACcAIAUcAAAaADAdAAAXABAeAAAa
  ADAfAgAbACEgAQAcACEDAAAABAAgAwAAFgAwFAAAFwAgAwAAAAQAIAMAAAUAMAQAAAEAIAUcAAAaADAdAAAXABAeAAAaADAfAgAbACEgAQAcAC
  ENFQAAHgAgFgAAIQAgFwAAHgAgGAAAHgAgGQAAHgAgIQIAAAABIgIAAAAEIwIAAAAEJAIAAAABJQIAAAABJgIAAAABJwIAAAABKwIAIAAhDhUA
  AB4AIBgAAB8AIBkAAB8AICEBAAAAASIBAAAABCMBAAAABCQBAAAAASUBAAAAASYBAAAAAScBAAAAASgBAAAAASkBAAAAASoBAAAAASsBAB0AIQ
  4VAAAeACAYAAAfACAZAAAfACAhAQAAAAEiAQAAAAQjAQAAAAQkAQAAAAElAQAAAAEmAQAAAAEnAQAAAAEoAQAAAAEpAQAAAAEqAQAAAAErAQAd
  ACEIIQIAAAABIgIAAAAEIwIAAAAEJAIAAAABJQIAAAABJgIAAAABJwIAAAABKwIAHgAhCyEBAAAAASIBAAAABCMBAAAABCQBAAAAASUBAAAAAS
  YBAAAAAScBAAAAASgBAAAAASkBAAAAASoBAAAAASsBAB8AIQ0VAAAeACAWAAAhACAXAAAeACAYAAAeACAZAAAeACAhAgAAAAEiAgAAAAQjAgAA
  AAQkAgAAAAElAgAAAAEmAgAAAAEnAgAAAAErAgAgACEIIQgAAAABIggAAAAEIwgAAAAEJAgAAAABJQgAAAABJggAAAABJwgAAAABKwgAIQAhBR
  wAACIAMB0AAAQAEB4AACIAMB8CACMAISABACQAIQghAgAAAAEiAgAAAAQjAgAAAAQkAgAAAAElAgAAAAEmAgAAAAEnAgAAAAErAgAeACELIQEA
  AAABIgEAAAAEIwEAAAAEJAEAAAABJQEAAAABJgEAAAABJwEAAAABKAEAAAABKQEAAAABKgEAAAABKwEAHwAhAAAAAAAFLAIAAAABLQIAAAABLg
  IAAAABLwIAAAABMAIAAAABASwBAAAAAQAAAAAFFQAGFgAHFwAIGAAJGQAKAAAAAAAFFQAGFgAHFwAIGAAJGQAKAQIBAgMBBQYBBgcBBwgBCQoB
  CgwCCw0DDA8BDRECDhIEERMBEhQBExUCGhgFGxkL
`

const field = (name: string, type: string) => ({ name, kind: 'scalar', type })

const config = {
  inlineSchema,
  runtimeDataModel: {
    models: { Order: { fields: [field('id', 'Int'), field('item', 'String')], dbName: 'orders', schema: null } },
    enums: {},
    types: {},
  },
  parameterizationSchema: { strings: words.trim().split(/\s+/), graph: graph.replace(/\s/g, '') },
  previewFeatures: [],
  clientVersion: '7.10.0',
  engineVersion: '',
  activeProvider: 'postgresql',
  compilerWasm: {
    importName: './query_compiler_fast_bg.js',
    getRuntime: () => import(`${compiler}.mjs`),
    async getQueryCompilerWasmModule() {
      const { wasm } = await import(`${compiler}.wasm-base64.mjs`)
      return new Wasm.Module(Buffer.from(wasm, 'base64'))
    },
  },
} as unknown as runtime.GetPrismaClientConfig

type Promised<T> = runtime.Types.Public.PrismaPromise<T>

export interface PrismaClient {
  readonly order: {
    create(args: { data: Order }): Promised<Order>
    findMany(): Promised<Order[]>
  }
  // biome-ignore lint/suspicious/noExplicitAny: as Prisma writes it
  $executeRawUnsafe(query: string, ...values: any[]): Promised<number>
  // biome-ignore lint/suspicious/noExplicitAny: as Prisma writes it
  $queryRawUnsafe<T = unknown>(query: string, ...values: any[]): Promised<T>
  $connect(): runtime.Types.Utils.JsPromise<void>
  $disconnect(): runtime.Types.Utils.JsPromise<void>
  $transaction<R>(
    run: (prisma: Omit<PrismaClient, runtime.ITXClientDenyList>) => runtime.Types.Utils.JsPromise<R>,
  ): runtime.Types.Utils.JsPromise<R>
}

export const PrismaClient = runtime.getPrismaClient(config) as unknown as {
  new (options: { adapter: runtime.SqlDriverAdapterFactory }): PrismaClient
}
