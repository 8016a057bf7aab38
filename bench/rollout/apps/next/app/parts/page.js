import { Parts } from './parts.js';

export const dynamic = 'force-dynamic';

export default function Page() {
  return (
    <main>
      <h1>version VERSION</h1>
      <Parts />
    </main>
  );
}
