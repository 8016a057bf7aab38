export default defineNuxtConfig({
  compatibilityDate: '2025-07-15',
  telemetry: false,
  // Not `node-cluster`: Corelane has a worker for each CPU.
  nitro: { preset: 'node-server', compressPublicAssets: true },
  sourcemap: { server: true },
});
