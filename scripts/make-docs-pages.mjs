// Renders docs/**/*.md to HTML, into dist/docs-pages.json. The server adds the frame of a page (src/server/docs-pages.ts).
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Marked } from 'marked'

const root = fileURLToPath(new URL('..', import.meta.url))
const repository = 'https://github.com/pawl-jobs/pawl/blob/main'

const names = readdirSync(join(root, 'docs'), { recursive: true })
  .map(name => name.replaceAll('\\', '/'))
  .filter(name => name.endsWith('.md'))
const pages = Object.fromEntries(names.sort().map(name => [pathOf(name), render(name)]))
writeFileSync(join(root, 'dist/docs-pages.json'), JSON.stringify(pages))

/** The address of a page below /docs: '' for the index. */
function pathOf(name) {
  return name === 'README.md' ? '' : name.replace(/\.md$/, '')
}

function render(name) {
  const text = readFileSync(join(root, 'docs', name), 'utf8')
  const used = new Map()
  const marked = new Marked({
    renderer: {
      heading({ tokens, depth, text: heading }) {
        const slug = slugOf(heading, used)
        return `<h${depth} id="${slug}">${this.parser.parseInline(tokens)}</h${depth}>\n`
      },
      link({ href, tokens }) {
        return `<a href="${linkFrom(name, href)}">${this.parser.parseInline(tokens)}</a>`
      },
      // Only drawings are part of the package. Photographs of the screen are linked.
      image({ href, text: alt }) {
        const target = linkFrom(name, href)
        return href.endsWith('.svg') ? `<img src="${target}" alt="${alt}">` : `<a href="${target}">Picture: ${alt}</a>`
      },
    },
  })
  const title = /^# (.+)$/m.exec(text)?.[1] ?? name
  return { title, html: marked.parse(text) }
}

/** The anchors that GitHub gives to headings. */
function slugOf(heading, used) {
  const plain = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase()
  const slug = plain.replace(/[^\p{L}\p{N}\s_-]/gu, '').replace(/\s/g, '-')
  const count = used.get(slug) ?? 0
  used.set(slug, count + 1)
  return count === 0 ? slug : `${slug}-${count}`
}

/** Addresses are relative, because the server may serve its pages below a prefix. */
function linkFrom(name, href) {
  if (/^[a-z]+:/.test(href) || href.startsWith('#')) return href
  const [path, hash = ''] = href.split('#')
  const target = posix.join('docs', dirname(name), path)
  const anchor = hash === '' ? '' : `#${hash}`
  const isServed = target.startsWith('docs/') && !target.endsWith('.png')
  if (!isServed) return `${repository}/${target}${anchor}`
  const address = `docs/${pathOf(target.slice('docs/'.length))}`.replace(/\/$/, '')
  const from = `docs/${pathOf(name)}`.replace(/\/$/, '')
  return `${posix.relative(posix.dirname(from), address) || '.'}${anchor}`
}
