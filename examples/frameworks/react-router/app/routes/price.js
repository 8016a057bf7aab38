export const loader = () => Response.json({ price: 42 });
