module.exports = {
  output: 'standalone',
  outputFileTracingRoot: __dirname,
  // Maps beside the server's chunks: the stack of a stuck render then names your sources. The build copies them along.
  experimental: { serverSourceMaps: true },
};
