// Hypernova's own cluster has one process for each CPU; Corelane has one worker for each, so this is one process.
const hypernova = require('hypernova/server');
const { createElement } = require('react');
const { renderToString } = require('react-dom/server');
const { renderPrice, slow } = require('./work.mjs');

const Page = ({ title = 'A page by Hypernova' }) =>
  createElement('main', null, createElement('h1', null, title), createElement('p', null, new Date().toISOString()));

// What Hypernova calls with the props of each component of a batch.
const components = {
  page: (props) => renderToString(createElement(Page, props)),
  slow: () => slow(200),
  stuck: () => String(renderPrice()),
};

hypernova({
  devMode: !process.env.CLUSTER,
  getCPUs: () => 1,
  host: '0.0.0.0',
  port: process.env.PORT ?? 3000,
  getComponent: (name) => components[name],
});
