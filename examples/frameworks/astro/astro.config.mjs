import node from '@astrojs/node';
import { defineConfig } from 'astro/config';

// All packages in the bundle: the folder of packages is removed after the build.
export default defineConfig({
  output: 'server',
  adapter: node({ mode: 'standalone' }),
  vite: { ssr: { noExternal: true }, build: { sourcemap: true } },
});
