import { type BootstrapContext, bootstrapApplication } from '@angular/platform-browser';
import { serverConfig } from './app/config.server';
import { Root } from './app/root';

export default (context: BootstrapContext) => bootstrapApplication(Root, serverConfig, context);
