import Image from 'next/image';

/** `/_next/image` makes it smaller in the worker, by sharp. */
export default function Picture() {
  return <Image src="/picture.png" alt="a picture" width={320} height={200} />;
}
