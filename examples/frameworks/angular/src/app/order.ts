import { Component, inject } from '@angular/core';
import { ActivatedRoute } from '@angular/router';

/** A form of the browser's own: it works before the scripts have come. */
@Component({
  selector: 'app-order',
  template: `
    @if (name) {
      <p>thanks, {{ name }}</p>
    } @else {
      <form method="post" action="/ordered">
        <input name="name" />
        <button type="submit">order</button>
      </form>
    }
  `,
})
export class Order {
  name = inject(ActivatedRoute).snapshot.queryParamMap.get('name');
}
