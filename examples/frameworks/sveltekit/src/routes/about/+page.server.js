/** At a click the browser asks for this alone: `/about/__data.json`. */
export const load = () => ({ text: 'about this shop' });
