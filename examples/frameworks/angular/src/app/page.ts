import { Component, signal } from '@angular/core';

@Component({
  selector: 'app-page',
  template: `
    <h1>A page by Angular</h1>
    <p>rendered at {{ now }}</p>
    <button type="button" (click)="likes.set(likes() + 1)">likes: {{ likes() }}</button>
  `,
})
export class Page {
  now = new Date().toISOString();
  likes = signal(0);
}
