import adapter from '@sveltejs/adapter-node';
import { sveltekit } from '@sveltejs/kit/vite';
import { defineConfig } from 'vite';

export default defineConfig({
  plugins: [sveltekit({ adapter: adapter() })],
  // With maps the stack of a stuck render names your sources. The picture is so small that Vite would put it into the
  // page; yours are files, which nginx serves.
  build: { sourcemap: true, assetsInlineLimit: 0 },
});
