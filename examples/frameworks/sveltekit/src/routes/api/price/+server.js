export const GET = () => Response.json({ price: 42 });
