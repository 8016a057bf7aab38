module.exports = {
  output: 'standalone',
  outputFileTracingRoot: __dirname,
  // nginx compresses (`compression` in renderservice.yaml): not in the place that renders.
  compress: false,
  experimental: {
    // With maps the stack of a stuck render names your sources. The build copies them along.
    serverSourceMaps: true,
    // The file system is read-only: pages that are kept for a while (ISR) stay in the memory of their worker.
    isrFlushToDisk: false,
  },
};
