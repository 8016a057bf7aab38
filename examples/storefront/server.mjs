import { createStorefront } from './src/app.mjs';
import { createCatalog } from './src/catalog.mjs';
import { PRODUCTS_MAX } from './src/props.mjs';

// Kubernetes sends SIGKILL 30 s after SIGTERM; a client that never finishes its request must not make us wait for that.
const SHUTDOWN_MS_MAX = 25_000;

const port = integerFromEnv('PORT', { otherwise: 3000, max: 65_535 });
const seed = integerFromEnv('SEED', { otherwise: 1, max: 2 ** 32 - 1 });
const products = integerFromEnv('PRODUCTS', { otherwise: 900, max: PRODUCTS_MAX });
const host = process.env.HOST ?? '0.0.0.0';

if (process.env.NODE_ENV !== 'production') {
  console.warn('storefront: NODE_ENV is not "production", so React runs its slower development build');
}

const server = createStorefront({ catalog: createCatalog({ seed, products: PRODUCTS_MAX }), products });
server.listen(port, host, () => {
  console.log(`storefront: listening on http://${host}:${server.address().port}`);
});

for (const signal of ['SIGTERM', 'SIGINT']) process.once(signal, () => shutDown(signal));

/** Stops accepting, lets the requests in progress finish, then ends the process. */
function shutDown(signal) {
  server.close(() => {
    console.log('storefront: stopped');
    // Every client has its answer or has left. Renders for those that left may still wait: nobody wants
    // them.
    process.exit(0);
  });
  console.log(`storefront: ${signal}, finishing the requests in progress`);
  setTimeout(() => server.closeAllConnections(), SHUTDOWN_MS_MAX).unref();
}

function integerFromEnv(name, { otherwise, max }) {
  const text = process.env[name];
  if (text === undefined || text === '') return otherwise;
  if (/^\d+$/.test(text) && Number(text) <= max) return Number(text);
  console.error(`storefront: ${name} must be a whole number from 0 to ${max}, not "${text}"`);
  return process.exit(1);
}
