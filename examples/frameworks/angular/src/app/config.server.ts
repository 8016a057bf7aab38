import { type ApplicationConfig, mergeApplicationConfig } from '@angular/core';
import { provideServerRendering, RenderMode, withRoutes } from '@angular/ssr';
import * as work from '../../work.mjs';
import { config } from './config';
import { WORK } from './work';

/** Each page is rendered for each request; the work is that of the server. */
export const serverConfig: ApplicationConfig = mergeApplicationConfig(config, {
  providers: [
    provideServerRendering(withRoutes([{ path: '**', renderMode: RenderMode.Server }])),
    { provide: WORK, useValue: work },
  ],
});
