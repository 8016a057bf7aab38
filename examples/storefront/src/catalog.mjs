import { createRandom } from './random.mjs';

const CATEGORIES = ['Boots', 'Trail shoes', 'Jackets', 'Backpacks', 'Tents', 'Sleeping bags', 'Stoves', 'Headlamps'];
const BRANDS = [
  'Alder & Ash',
  'Borealis',
  'Cairn',
  'Driftline',
  'Eastwind',
  'Fernweh',
  'Granite',
  'Hollow Pine',
  'Iskra',
];
const ADJECTIVES = [
  'Light',
  'Rugged',
  'Alpine',
  'Coastal',
  'Packable',
  'Insulated',
  'Waterproof',
  'Classic',
  'Breathable',
];
const MATERIALS = ['Merino', 'Canvas', 'Ripstop', 'Leather', 'Down', 'Titanium', 'Recycled', 'Waxed'];
const BADGES = ['New', 'Bestseller', 'Members', 'Repairable'];

const DAY_MS = 86_400_000;
// A fixed day, not the clock: the page must not change between two renders of the same props.
const AS_OF = '2026-03-02';

/**
 * Generates the props of a product list page: about 200 bytes of JSON for each product.
 *
 * @param {{ seed: number, products: number }} options the seed and how many products
 * @returns {object} props as `parseProps` accepts them; the same options give the same props
 */
export function createCatalog({ seed, products }) {
  const random = createRandom(seed);
  return {
    storeName: 'Northbound Outfitters',
    locale: 'en-US',
    currency: 'USD',
    asOf: AS_OF,
    products: Array.from({ length: products }, (_, index) => createProduct(random, index)),
  };
}

function createProduct(random, index) {
  const integer = (below) => Math.floor(random() * below);
  const pick = (list) => list[integer(list.length)];
  const category = pick(CATEGORIES);
  const priceCents = 1_500 + integer(48_000);
  return {
    id: `sku-${String(index + 1).padStart(5, '0')}`,
    name: `${pick(ADJECTIVES)} ${pick(MATERIALS)} ${category}`,
    brand: pick(BRANDS),
    category,
    priceCents,
    ...createPriceDetail(random, priceCents),
    rating: Math.round((2.5 + random() * 2.5) * 10) / 10,
    reviewCount: integer(4_000),
    stock: random() < 0.1 ? 0 : integer(60),
    badges: BADGES.filter(() => random() < 0.15),
    hues: Array.from({ length: 1 + integer(4) }, () => integer(360)),
    addedOn: new Date(Date.parse(AS_OF) - integer(700) * DAY_MS).toISOString().slice(0, 10),
  };
}

/** One product in four has a price that depends on the size, one in four is reduced. */
function createPriceDetail(random, priceCents) {
  const kind = random();
  const higherCents = Math.round(priceCents * (1.1 + random() * 0.4));
  if (kind < 0.25) return { priceMaxCents: higherCents };
  if (kind < 0.5) return { listPriceCents: higherCents };
  return {};
}
