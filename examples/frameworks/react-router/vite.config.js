import { reactRouter } from '@react-router/dev/vite';
import { defineConfig } from 'vite';

// With maps the stack of a stuck render names your sources. None for browsers.
export default defineConfig(({ isSsrBuild }) => ({ plugins: [reactRouter()], build: { sourcemap: isSsrBuild } }));
