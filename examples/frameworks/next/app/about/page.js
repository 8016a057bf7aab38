import Image from 'next/image';

export const dynamic = 'force-dynamic';

export default function About() {
  return (
    <main>
      <p>about this shop</p>
      <Image src="/picture.png" alt="a picture" width={320} height={200} loading="eager" />
    </main>
  );
}
