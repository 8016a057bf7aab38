import { createElement as h, useId } from 'react';
import { useFormats } from './formats.mjs';

const PRICE_STEPS_CENTS = [0, 5_000, 10_000, 20_000, 30_000, 40_000];

/** The filters beside the list, each with the number of products behind it. */
export function Facets({ products }) {
  const formats = useFormats();
  const priceStep = ({ priceCents }) => PRICE_STEPS_CENTS.findLast((cents) => cents <= priceCents);
  return h(
    'aside',
    { className: 'facets', 'aria-label': 'Filters' },
    h(Facet, { title: 'Category', counts: countBy(products, (product) => product.category) }),
    h(Facet, { title: 'Brand', counts: countBy(products, (product) => product.brand) }),
    h(Facet, {
      title: 'Price',
      counts: countBy(products, priceStep),
      label: (cents) => `From ${formats.money(cents)}`,
    }),
    h(Facet, {
      title: 'Rating',
      counts: countBy(products, (product) => Math.floor(product.rating)),
      label: (stars) => `${stars} stars`,
    }),
    h(Facet, {
      title: 'Badge',
      counts: countBy(
        products.flatMap((product) => product.badges),
        (badge) => badge,
      ),
    }),
  );
}

function Facet({ title, counts, label = String }) {
  const id = useId();
  const formats = useFormats();
  return h(
    'fieldset',
    { 'aria-labelledby': id },
    h('legend', { id }, title),
    h(
      'ul',
      null,
      counts.map(([value, count]) =>
        h(
          'li',
          { key: value },
          h(
            'label',
            null,
            h('input', { type: 'checkbox', name: title, value }),
            h('span', null, label(value)),
            h('span', { className: 'count' }, formats.count(count)),
          ),
        ),
      ),
    ),
  );
}

/** @returns {[unknown, number][]} each key with its number of items, in the order of the keys */
function countBy(items, keyOf) {
  const counts = new Map();
  for (const item of items) counts.set(keyOf(item), (counts.get(keyOf(item)) ?? 0) + 1);
  return [...counts].sort(([a], [b]) => (a < b ? -1 : 1));
}
