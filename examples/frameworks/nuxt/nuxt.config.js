export default defineNuxtConfig({
  compatibilityDate: '2025-07-15',
  telemetry: false,
  app: { head: { title: 'Nuxt behind Corelane', link: [{ rel: 'icon', href: 'data:,' }] } },
  // Not `node-cluster`: Corelane has a worker for each CPU.
  nitro: { preset: 'node-server', compressPublicAssets: true },
  sourcemap: { server: true },
  // This picture is so small that Vite would put it into the page; yours are files, which nginx serves.
  vite: { build: { assetsInlineLimit: 0 } },
});
