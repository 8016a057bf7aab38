import { createElement as h, useId } from 'react';
import { useFormats } from './formats.mjs';

const DAY_MS = 86_400_000;
const STARS = [1, 2, 3, 4, 5];
const LOW_STOCK = 5;
const SHOE_SIZES = ['37', '38', '39', '40', '41', '42', '43', '44', '45'];
const SIZES = new Map([
  ['Boots', SHOE_SIZES],
  ['Trail shoes', SHOE_SIZES],
  ['Jackets', ['XS', 'S', 'M', 'L', 'XL']],
  ['Sleeping bags', ['Regular', 'Long']],
]);

/**
 * One product of the list.
 *
 * @param {{ product: object, asOf: string }} props the product, and the day for which delivery is promised
 */
export function ProductCard({ product, asOf }) {
  const titleId = useId();
  return h(
    'li',
    null,
    h(
      'article',
      { className: 'card', 'aria-labelledby': titleId },
      h(Picture, { product }),
      h(BadgeList, { badges: product.badges }),
      h('p', { className: 'brand' }, product.brand),
      h('h3', { id: titleId }, h('a', { href: `/products/${encodeURIComponent(product.id)}` }, product.name)),
      h(Rating, { rating: product.rating, reviewCount: product.reviewCount }),
      h(Price, product),
      h(Swatches, { hues: product.hues }),
      h(Availability, { stock: product.stock, asOf, addedOn: product.addedOn }),
      h(CartForm, { product, sizes: SIZES.get(product.category) ?? [] }),
    ),
  );
}

function Picture({ product }) {
  const hue = product.hues[0] ?? 210;
  const background = `linear-gradient(135deg, hsl(${hue} 45% 82%), hsl(${(hue + 40) % 360} 45% 62%))`;
  return h('div', { className: 'picture', style: { background }, 'aria-hidden': true }, product.category);
}

function BadgeList({ badges }) {
  if (badges.length === 0) return null;
  return h(
    'ul',
    { className: 'badges' },
    badges.map((badge) => h('li', { key: badge, className: 'badge' }, badge)),
  );
}

function Rating({ rating, reviewCount }) {
  const formats = useFormats();
  return h(
    'p',
    { className: 'rating' },
    h(
      'span',
      { role: 'img', 'aria-label': `${formats.rating(rating)} of 5 stars` },
      STARS.map((star) => h(Star, { key: star, isFull: star <= Math.round(rating) })),
    ),
    h('small', null, `(${formats.count(reviewCount)})`),
  );
}

function Star({ isFull }) {
  return h('i', { className: isFull ? 'full' : undefined }, '\u2605');
}

function Price({ priceCents, listPriceCents, priceMaxCents }) {
  const formats = useFormats();
  if (priceMaxCents !== undefined) return h('p', { className: 'price' }, formats.moneyRange(priceCents, priceMaxCents));
  if (listPriceCents === undefined) return h('p', { className: 'price' }, h(Amount, { cents: priceCents }));
  return h(
    'p',
    { className: 'price reduced' },
    h(Amount, { cents: priceCents }),
    h('s', null, formats.money(listPriceCents)),
    h('span', { className: 'discount' }, formats.percent(priceCents / listPriceCents - 1)),
  );
}

/** An amount whose parts (currency, whole, fraction) can be styled each in its own way, in the locale's order. */
function Amount({ cents }) {
  const parts = useFormats().moneyParts(cents);
  return h(
    'strong',
    { className: 'amount' },
    parts.map(({ type, value }, index) => h('span', { key: index, className: type }, value)),
  );
}

function Swatches({ hues }) {
  return h(
    'ul',
    { className: 'swatches', 'aria-label': 'Colours' },
    hues.map((hue, index) => h('li', { key: index, style: { backgroundColor: `hsl(${hue} 55% 50%)` } })),
  );
}

function Availability({ stock, asOf, addedOn }) {
  const formats = useFormats();
  const since = h('small', null, `In our range since ${formats.month(Date.parse(addedOn))}`);
  if (stock === 0) return h('p', { className: 'stock none' }, 'Sold out', since);
  const isLow = stock <= LOW_STOCK;
  const firstDay = Date.parse(asOf) + (isLow ? 4 : 2) * DAY_MS;
  return h(
    'p',
    { className: isLow ? 'stock low' : 'stock' },
    isLow ? `Only ${formats.count(stock)} left. ` : null,
    `Delivered ${formats.days(firstDay, firstDay + 2 * DAY_MS)}`,
    since,
  );
}

function CartForm({ product, sizes }) {
  const isSoldOut = product.stock === 0;
  return h(
    'form',
    { method: 'post', action: '#' },
    h('input', { type: 'hidden', name: 'sku', value: product.id }),
    h(SizeSelect, { sizes, disabled: isSoldOut }),
    h('button', { type: 'submit', disabled: isSoldOut }, 'Add to cart'),
  );
}

function SizeSelect({ sizes, disabled }) {
  if (sizes.length === 0) return null;
  return h(
    'select',
    { name: 'size', 'aria-label': 'Size', disabled },
    sizes.map((size) => h('option', { key: size }, size)),
  );
}
