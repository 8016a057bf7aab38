import { inject, makeStateKey, REQUEST, RESPONSE_INIT, TransferState } from '@angular/core';
import type { Routes } from '@angular/router';
import { About } from './about';
import { Order } from './order';
import { Page } from './page';
import { Text } from './text';
import { WORK } from './work';

const SESSION = makeStateKey<string>('session');
const PRICES = makeStateKey<string>('prices');

/** The server knows it, and the browser takes over what the server has said. */
function session(): string {
  const state = inject(TransferState);
  const bytes = inject(WORK)?.sessionBytes(inject(REQUEST)?.headers.get('cookie'));
  if (bytes !== undefined) state.set(SESSION, `a session of ${bytes} bytes`);
  return state.get(SESSION, '');
}

/** `cache.bypass.cookies` has the name of the cookie, so drafts are rendered for their editor. */
function prices(): string {
  const state = inject(TransferState);
  const request = inject(REQUEST);
  const response = inject(RESPONSE_INIT);
  if (request && response) {
    const isDraft = /(?:^|; )draft=/.test(request.headers.get('cookie') ?? '');
    // The cache of the pod keeps the page, but no draft.
    const headers = new Headers(response.headers);
    headers.set('Cache-Control', isDraft ? 'private, no-store' : 's-maxage=3600');
    response.headers = headers;
    state.set(PRICES, `prices of ${new Date().toISOString()}${isDraft ? ', a draft of them' : ''}`);
  }
  return state.get(PRICES, '');
}

export const routes: Routes = [
  { path: '', component: Page },
  { path: 'about', component: About },
  { path: 'order', component: Order },
  { path: 'member', component: Text, resolve: { text: session } },
  { path: 'prices', component: Text, resolve: { text: prices } },
  { path: 'slow', component: Text, resolve: { text: () => inject(WORK)?.slow(200) ?? '' } },
  { path: 'stuck', component: Text, resolve: { text: () => String(inject(WORK)?.renderPrice() ?? '') } },
];
