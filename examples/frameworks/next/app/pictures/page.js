import Image from 'next/image';

export const dynamic = 'force-dynamic';

const NUMBERS = [...Array(20).keys()];

/** A page of a catalogue: the browser asks for all of them at once, and none takes a render slot. */
export default function Pictures() {
  return NUMBERS.map((n) => (
    <Image key={n} src={`/picture.png?n=${n}`} alt={`picture ${n}`} width={64} height={40} loading="eager" />
  ));
}
