import { inject, makeStateKey, REQUEST, TransferState } from '@angular/core';
import type { Routes } from '@angular/router';
import { About } from './about';
import { Order } from './order';
import { Page } from './page';
import { Text } from './text';
import { WORK } from './work';

const SESSION = makeStateKey<string>('session');

/** The server knows it, and the browser takes over what the server has said. */
function session(): string {
  const state = inject(TransferState);
  const bytes = inject(WORK)?.sessionBytes(inject(REQUEST)?.headers.get('cookie'));
  if (bytes !== undefined) state.set(SESSION, `a session of ${bytes} bytes`);
  return state.get(SESSION, '');
}

export const routes: Routes = [
  { path: '', component: Page },
  { path: 'about', component: About },
  { path: 'order', component: Order },
  { path: 'member', component: Text, resolve: { text: session } },
  { path: 'slow', component: Text, resolve: { text: () => inject(WORK)?.slow(200) ?? '' } },
  { path: 'stuck', component: Text, resolve: { text: () => String(inject(WORK)?.renderPrice() ?? '') } },
];
