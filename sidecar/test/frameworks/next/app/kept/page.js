/** Made when the app is built: what Next itself keeps. */
export default function Kept() {
  return <p>{'x'.repeat(9_000)}</p>;
}
