import { Form } from 'react-router';

export async function action({ request }) {
  return { name: String((await request.formData()).get('name')) };
}

export default function Order({ actionData }) {
  if (actionData) return <p>thanks, {actionData.name}</p>;
  return (
    <Form method="post">
      <input name="name" />
      <button type="submit">order</button>
    </Form>
  );
}
