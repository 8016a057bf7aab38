import adapter from '@sveltejs/adapter-node';
import { sveltekit } from '@sveltejs/kit/vite';
import { defineConfig } from 'vite';

// With maps the stack of a stuck render names your sources.
export default defineConfig({ plugins: [sveltekit({ adapter: adapter() })], build: { sourcemap: true } });
