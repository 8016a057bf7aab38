// Hypernova's own cluster has one process for each CPU; Corelane has one worker for each, so this is one process.
const hypernova = require('hypernova/server');
const { renderPrice, slow } = require('./work.mjs');

const components = {
  page: () => 'page',
  slow: () => slow(200),
  stuck: () => String(renderPrice()),
};

hypernova({
  devMode: !process.env.CLUSTER,
  getCPUs: () => 1,
  host: '0.0.0.0',
  port: process.env.PORT,
  getComponent: (name) => components[name],
});
