import { defineTask, GiveUp } from 'pawl'
import { z } from 'zod'

export interface Mail {
  send(to: string, text: string): Promise<void>
}

/** The dependencies of the task are parameters, so that a test can replace them. */
export function sendInvoice(mail: Mail) {
  return defineTask({
    type: 'send-invoice',
    payload: z.object({ order: z.string(), to: z.string() }),
    retry: { attempts: 3, delaySeconds: 60, jitter: false },
    async handler({ order, to }, ctx) {
      if (!to.includes('@')) throw new GiveUp(`"${to}" is not an address.`)
      ctx.progress('sending')
      await mail.send(to, `Your invoice for order ${order}`)
      return { sentTo: to }
    },
  })
}
