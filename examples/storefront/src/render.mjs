import { createElement as h } from 'react';
import { renderToString } from 'react-dom/server';
import { Page } from './components/page.mjs';

/**
 * Renders the whole page. Runs without a break: the event loop does nothing else meanwhile.
 *
 * @param {object} props checked props (see `parseProps`)
 * @returns {string} an HTML document; every text from the props is escaped
 */
export function renderPage(props) {
  return `<!doctype html>${renderToString(h(Page, props))}`;
}
