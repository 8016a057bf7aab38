import type { ApplicationConfig } from '@angular/core';
import { provideClientHydration } from '@angular/platform-browser';
import { provideRouter } from '@angular/router';
import { routes } from './routes';

export const config: ApplicationConfig = { providers: [provideRouter(routes), provideClientHydration()] };
