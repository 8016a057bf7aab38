import { reactRouter } from '@react-router/dev/vite';
import { defineConfig } from 'vite';

export default defineConfig({
  plugins: [reactRouter()],
  // With maps the stack of a stuck render names your sources. None for browsers.
  environments: { ssr: { build: { sourcemap: true } } },
});
