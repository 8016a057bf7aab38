export const actions = {
  default: async ({ request }) => ({ name: String((await request.formData()).get('name')) }),
};
