module.exports = {
  output: 'standalone',
  outputFileTracingRoot: __dirname,
  // nginx compresses (`compression` in renderservice.yaml): not in the place that renders.
  compress: false,
  // revalidateTag and revalidatePath purge pages in all pods.
  cacheHandler: require.resolve('./cache-handler.js'),
  cacheMaxMemorySize: 0,
  // Its query makes twenty pictures of one.
  images: { localPatterns: [{ pathname: '/picture.png' }] },
  // The tags by which pages are purged.
  headers: async () => [{ source: '/prices', headers: [{ key: 'Cache-Tag', value: 'prices' }] }],
  experimental: {
    // With maps the stack of a stuck render names your sources. The build copies them along.
    serverSourceMaps: true,
    // The file system is read-only.
    isrFlushToDisk: false,
  },
};
