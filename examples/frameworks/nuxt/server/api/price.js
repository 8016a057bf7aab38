export default defineEventHandler(() => ({ price: 42 }));
