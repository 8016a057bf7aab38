/**
 * More products than this are refused: the time of a render grows with them, and a worker renders one page at a time.
 */
export const PRODUCTS_MAX = 5_000;

const DEFAULTS = { storeName: 'Storefront', locale: 'en-US', currency: 'USD', asOf: '2026-03-02' };

// Half of a surrogate pair is no text: encodeURIComponent would throw in the middle of a render.
const isText = (value) => typeof value === 'string' && value.isWellFormed();
const isCount = (value) => Number.isSafeInteger(value) && value >= 0;
const isDate = (value) => isText(value) && /^\d{4}-\d{2}-\d{2}$/.test(value) && !Number.isNaN(Date.parse(value));
const isListOf = (isItem) => (value) => Array.isArray(value) && value.length <= 20 && value.every(isItem);

const TEXT = { accepts: isText, expected: 'a string (of whole characters)' };
const TEXTS = { accepts: isListOf(isText), expected: 'a list of at most 20 strings' };
const COUNT = { accepts: isCount, expected: 'a whole number of 0 or more' };
const OPTIONAL_COUNT = { ...COUNT, accepts: (value) => value === undefined || isCount(value) };
const DATE = { accepts: isDate, expected: 'a date like 2026-03-02' };

const PRODUCT_FIELDS = {
  id: TEXT,
  name: TEXT,
  brand: TEXT,
  category: TEXT,
  priceCents: COUNT,
  listPriceCents: OPTIONAL_COUNT,
  priceMaxCents: OPTIONAL_COUNT,
  rating: { accepts: (value) => Number.isFinite(value) && value >= 0 && value <= 5, expected: 'a number from 0 to 5' },
  reviewCount: COUNT,
  stock: COUNT,
  badges: TEXTS,
  // Colours are hues, not CSS: text from outside must not become part of a style.
  hues: {
    accepts: isListOf((value) => isCount(value) && value < 360),
    expected: 'a list of at most 20 hues (0 to 359)',
  },
  addedOn: DATE,
};

/** Says what is wrong with props that came from outside; the message is meant for the caller. */
export class PropsError extends Error {}

/**
 * Parses and checks the props of a page. Fields that are not known are ignored.
 *
 * @param {string} json the text of a request body
 * @returns {object} props that the page can render without further checks
 * @throws {PropsError} when the text is not JSON or a field is not as the page needs it
 */
export function parseProps(json) {
  let given;
  try {
    given = JSON.parse(json);
  } catch (error) {
    throw new PropsError(`the body is not valid JSON: ${error.message}`);
  }
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw new PropsError('the body must be a JSON object with a list "products"');
  }
  const props = { ...DEFAULTS, ...given };
  checkField(props, 'storeName', TEXT, 'storeName');
  checkField(props, 'asOf', DATE, 'asOf');
  checkFormats(props);
  checkProducts(props.products);
  return props;
}

function checkFormats({ locale, currency }) {
  try {
    new Intl.NumberFormat(locale, { style: 'currency', currency });
  } catch (error) {
    throw new PropsError(`locale and currency must be known ones: ${error.message}`);
  }
}

function checkProducts(products) {
  if (!Array.isArray(products)) throw new PropsError('products must be a list');
  if (products.length > PRODUCTS_MAX) {
    throw new PropsError(`products has ${products.length} entries, at most ${PRODUCTS_MAX} are allowed`);
  }
  products.forEach((product, index) => {
    if (typeof product !== 'object' || product === null) throw new PropsError(`products[${index}] must be an object`);
    for (const [name, rule] of Object.entries(PRODUCT_FIELDS)) {
      checkField(product, name, rule, `products[${index}].${name}`);
    }
  });
}

function checkField(holder, name, rule, path) {
  if (!rule.accepts(holder[name])) throw new PropsError(`${path} must be ${rule.expected}`);
}
