import { reactRouter } from '@react-router/dev/vite';
import { defineConfig } from 'vite';

export default defineConfig(({ isSsrBuild, command }) => ({
  plugins: [reactRouter()],
  // All packages in the server's bundle: the image needs none. `vite dev` would not take React's in that way.
  ssr: { noExternal: command === 'build' ? true : undefined },
  // With maps the stack of a stuck render names your sources. None for browsers.
  build: { sourcemap: isSsrBuild },
}));
