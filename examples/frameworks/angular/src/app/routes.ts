import { inject } from '@angular/core';
import type { Routes } from '@angular/router';
import { Page } from './page';
import { Text } from './text';
import { WORK } from './work';

export const routes: Routes = [
  { path: '', component: Page },
  { path: 'slow', component: Text, resolve: { text: () => inject(WORK)?.slow(200) ?? '' } },
  { path: 'stuck', component: Text, resolve: { text: () => String(inject(WORK)?.renderPrice() ?? '') } },
];
