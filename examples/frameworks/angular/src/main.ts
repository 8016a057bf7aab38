import { bootstrapApplication } from '@angular/platform-browser';
import { config } from './app/config';
import { Root } from './app/root';

bootstrapApplication(Root, config);
