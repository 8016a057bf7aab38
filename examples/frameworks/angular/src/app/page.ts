import { Component, signal } from '@angular/core';
import { RouterLink } from '@angular/router';

@Component({
  selector: 'app-page',
  imports: [RouterLink],
  template: `
    <h1>A page by Angular</h1>
    <p>rendered at {{ now }}</p>
    <button type="button" (click)="likes.set(likes() + 1)">likes: {{ likes() }}</button>
    <a routerLink="/about">about</a>
  `,
})
export class Page {
  now = new Date().toISOString();
  likes = signal(0);
}
