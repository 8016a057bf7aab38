/** Who asks, as far as a request tells: a crawler, a browser that looks ahead. Anybody may lie in both. */
import { block, type Lines } from '../directives.ts';

/**
 * Programs that follow links, or fetch a page to preview or to judge it. Not names that browsers inside of apps have,
 * too (Pinterest, Telegram); Cubot makes telephones.
 */
const CRAWLERS = [
  ...['(?<!cu)bot', 'crawl', 'spider', 'slurp', 'archiver', 'scrape', 'headless', 'lighthouse', 'pagespeed', 'preview'],
  ...['google-', 'googleother', 'mediapartners', 'feedfetcher', 'facebookexternal', 'meta-external', '^whatsapp'],
  ...['gpt-user', 'claude-', 'perplexity-', 'embedly', 'validator', 'monitor', 'uptime', 'yandex(?!search)'],
].join('|');

/** Maps; what is not so is empty. */
export const VISITORS: Lines = [
  '# No browser is without a name.',
  block('map $http_user_agent $corelane_crawler', '"" 1;', `"~*${CRAWLERS}" 1;`),
  block(
    'map "$http_sec_purpose|$http_purpose|$http_x_purpose|$http_x_moz|$http_next_router_prefetch" $corelane_prefetch',
    '"~*prefetch|prerender|preview|\\|[^|]+$" 1;',
  ),
];
