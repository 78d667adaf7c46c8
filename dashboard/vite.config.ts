import { defineConfig } from 'vite'

// biome-ignore lint/style/noDefaultExport: Vite asks for one.
export default defineConfig({
  root: import.meta.dirname,
  // Wherever the page is served, what it is made of lies beside it.
  base: './',
  esbuild: { jsx: 'automatic' },
  build: {
    outDir: '../dist/dashboard',
    emptyOutDir: true,
    target: 'es2022',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
})
