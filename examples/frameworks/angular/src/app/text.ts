import { Component, inject } from '@angular/core';
import { ActivatedRoute } from '@angular/router';

@Component({ selector: 'app-text', template: '<p>{{ text }}</p>' })
export class Text {
  text = inject(ActivatedRoute).snapshot.data.text;
}
