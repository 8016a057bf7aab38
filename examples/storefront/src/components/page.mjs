import { createElement as h } from 'react';
import { Facets } from './facets.mjs';
import { createFormats, FormatsProvider, useFormats } from './formats.mjs';
import { ProductCard } from './product-card.mjs';
import { STYLES } from './styles.mjs';

const NAVIGATION = ['Men', 'Women', 'Kids', 'Equipment', 'Repair', 'Stories', 'Sale'];
const FOOTER = {
  Help: ['Delivery', 'Returns', 'Size guide', 'Contact'],
  Company: ['About us', 'Stores', 'Careers', 'Press'],
  Legal: ['Terms', 'Privacy', 'Accessibility', 'Imprint'],
};
const LINKED_PRODUCTS_MAX = 24;

/**
 * The product list page, a whole HTML document.
 *
 * @param {object} props checked props (see `parseProps`)
 */
export function Page({ storeName, locale, currency, asOf, products }) {
  return h(
    FormatsProvider,
    { value: createFormats(locale, currency) },
    h(
      'html',
      { lang: locale },
      h(Head, { storeName, currency, products }),
      h(
        'body',
        null,
        h(Header, { storeName }),
        h(
          'div',
          { className: 'layout' },
          h(Facets, { products }),
          h('main', null, h(Toolbar, { products }), h(ProductGrid, { products, asOf })),
        ),
        h(Footer, { storeName }),
      ),
    ),
  );
}

function Head({ storeName, currency, products }) {
  return h(
    'head',
    null,
    h('meta', { charSet: 'utf-8' }),
    h('meta', { name: 'viewport', content: 'width=device-width, initial-scale=1' }),
    h('title', null, `All products | ${storeName}`),
    h('meta', { name: 'description', content: `${products.length} products for outdoor days and nights` }),
    // biome-ignore lint/security/noDangerouslySetInnerHtml: a constant of ours
    h('style', { dangerouslySetInnerHTML: { __html: STYLES } }),
    h(StructuredData, { currency, products }),
  );
}

/** What search engines read. A script's content is not escaped by React, so "<" must not appear in it. */
function StructuredData({ currency, products }) {
  const list = {
    '@context': 'https://schema.org',
    '@type': 'ItemList',
    numberOfItems: products.length,
    itemListElement: products.slice(0, LINKED_PRODUCTS_MAX).map(({ id, name, brand, priceCents }, index) => ({
      '@type': 'ListItem',
      position: index + 1,
      item: {
        '@type': 'Product',
        sku: id,
        name,
        brand,
        offers: { '@type': 'Offer', price: (priceCents / 100).toFixed(2), priceCurrency: currency },
      },
    })),
  };
  const json = JSON.stringify(list).replaceAll('<', '\\u003c');
  // biome-ignore lint/security/noDangerouslySetInnerHtml: JSON in which no tag can begin
  return h('script', { type: 'application/ld+json', dangerouslySetInnerHTML: { __html: json } });
}

function Header({ storeName }) {
  return h(
    'header',
    { className: 'site' },
    h('a', { className: 'logo', href: '/' }, storeName),
    h(
      'nav',
      { 'aria-label': 'Main' },
      h(
        'ul',
        null,
        NAVIGATION.map((name) => h('li', { key: name }, h('a', { href: '#' }, name))),
      ),
    ),
    h(
      'form',
      { role: 'search' },
      h('input', { type: 'search', name: 'q', placeholder: 'Search products', 'aria-label': 'Search products' }),
    ),
    h('a', { className: 'cart', href: '#' }, 'Cart ', h('span', { className: 'count' }, 0)),
  );
}

function Toolbar({ products }) {
  const formats = useFormats();
  return h(
    'div',
    { className: 'toolbar' },
    h('h1', null, 'All products'),
    h('p', null, `${formats.count(products.length)} products`),
    h(
      'label',
      null,
      'Sort by ',
      h(
        'select',
        { name: 'sort', defaultValue: 'featured' },
        ['featured', 'newest', 'price', 'rating'].map((order) => h('option', { key: order, value: order }, order)),
      ),
    ),
  );
}

function ProductGrid({ products, asOf }) {
  const { compareNames } = useFormats();
  const featuredFirst = products.toSorted(
    (a, b) => Number(b.stock > 0) - Number(a.stock > 0) || b.rating - a.rating || compareNames(a.name, b.name),
  );
  return h(
    'ul',
    { className: 'grid' },
    featuredFirst.map((product) => h(ProductCard, { key: product.id, product, asOf })),
  );
}

function Footer({ storeName }) {
  return h(
    'footer',
    { className: 'site' },
    Object.entries(FOOTER).map(([title, links]) =>
      h(
        'section',
        { key: title },
        h('h2', null, title),
        h(
          'ul',
          null,
          links.map((name) => h('li', { key: name }, h('a', { href: '#' }, name))),
        ),
      ),
    ),
    h('p', null, `${storeName} is not a real shop.`),
  );
}
