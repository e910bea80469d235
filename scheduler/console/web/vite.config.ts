import { defineConfig } from 'vite'

// Fixed names and no hash in them: the files are committed, and served with a hash of their content as ETag.
export default defineConfig({
  base: './',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    outDir: '../dist',
    emptyOutDir: true,
    target: 'es2022',
    sourcemap: false,
    modulePreload: false,
    chunkSizeWarningLimit: 300,
    rollupOptions: { output: { entryFileNames: 'app.js', chunkFileNames: '[name].js', assetFileNames: 'app[extname]' } },
  },
})
