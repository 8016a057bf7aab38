import node from '@astrojs/node';
import { defineConfig } from 'astro/config';

export default defineConfig({
  output: 'server',
  adapter: node({ mode: 'standalone' }),
  // All packages in the bundle: the image needs none. With maps the stack of a stuck render names your sources.
  vite: { ssr: { noExternal: true }, build: { sourcemap: true } },
});
