import { createCookie } from 'react-router';

/** Of draft mode; `cache.bypass.cookies` has its name. An application of yours signs it (`secrets`). */
export const draft = createCookie('draft', { httpOnly: true });
