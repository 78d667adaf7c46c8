import { defineConfig } from 'vite'
import { completeLicenses, licensesFile } from './complete-licenses.ts'

// biome-ignore lint/style/noDefaultExport: Vite asks for one.
export default defineConfig({
  root: import.meta.dirname,
  // Wherever the page is served, what it is made of lies beside it.
  base: './',
  plugins: [completeLicenses()],
  esbuild: { jsx: 'automatic' },
  build: {
    outDir: '../dist/dashboard',
    emptyOutDir: true,
    target: 'es2022',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // The licenses of the bundled packages demand that their text is shipped with the code.
    license: { fileName: licensesFile },
  },
})
