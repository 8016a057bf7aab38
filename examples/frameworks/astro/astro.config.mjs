import node from '@astrojs/node';
import { defineConfig } from 'astro/config';

export default defineConfig({
  output: 'server',
  adapter: node({ mode: 'standalone' }),
  // The hosts of your site. Else Astro does not know that a page has come by https, and refuses its forms.
  security: { allowedDomains: [{ hostname: 'localhost' }, { hostname: '127.0.0.1' }] },
  // This page is so small that Astro would put its style and script into it; yours has files, which nginx serves.
  build: { inlineStylesheets: 'never' },
  // All packages in the bundle: the image needs none, but for the libraries of sharp. With maps the stack of a stuck
  // render names your sources.
  vite: { ssr: { noExternal: true }, build: { sourcemap: true, assetsInlineLimit: 0 } },
});
