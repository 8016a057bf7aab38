import { Component } from '@angular/core';

@Component({
  selector: 'app-about',
  template: `
    <p>about this shop</p>
    <img src="/picture.svg" alt="a picture" width="320" height="200" />
  `,
})
export class About {}
