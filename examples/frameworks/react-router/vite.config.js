import { reactRouter } from '@react-router/dev/vite';
import { defineConfig } from 'vite';

export default defineConfig({
  plugins: [reactRouter()],
  // This picture is so small that Vite would put it into the page; yours are files, which nginx serves.
  build: { assetsInlineLimit: 0 },
  // With maps the stack of a stuck render names your sources. None for browsers.
  environments: { ssr: { build: { sourcemap: true } } },
});
