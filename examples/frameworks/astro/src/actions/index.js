import { defineAction } from 'astro:actions';

/** What the form of /order calls. */
export const server = {
  order: defineAction({ accept: 'form', handler: (form) => ({ name: String(form.get('name')) }) }),
};
