import { redirect } from 'next/navigation';

export const dynamic = 'force-dynamic';

async function order(form) {
  'use server';
  redirect(`/order?name=${encodeURIComponent(String(form.get('name')))}`);
}

export default async function Order({ searchParams }) {
  const { name } = await searchParams;
  if (name) return <p>thanks, {name}</p>;
  return (
    <form action={order}>
      <input name="name" />
      <button type="submit">order</button>
    </form>
  );
}
