/** The frame of an HTML page of the documentation. It loads and runs nothing. */
import { createHash } from 'node:crypto'

const style = `
  body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color-scheme: light dark }
  nav { display: flex; flex-wrap: wrap; gap: 0 1.2rem }
  table { border-collapse: collapse; width: 100% }
  td, th { text-align: left; vertical-align: top; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid #8884 }
  pre { overflow-x: auto; padding: .8rem; border-radius: .3rem; background: #8882 }
  code { font-size: .9em; overflow-wrap: anywhere }
  pre code { overflow-wrap: normal }
  img { max-width: 100% }
  small { opacity: .75 }
  tr:target, h1:target, h2:target, h3:target { background: #fd08 }`

/** The one style sheet is allowed by its hash. */
export const htmlPolicy = (isWithPictures: boolean) =>
  [
    "default-src 'none'",
    `style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`,
    ...(isWithPictures ? ["img-src 'self'"] : []),
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ')

export function htmlPage(title: string, links: string, body: string): string {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Pawl: ${escapeHtml(title)}</title>
<style>${style}</style>
<nav>${links}</nav>
${body}
</html>
`
}

export function escapeHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
