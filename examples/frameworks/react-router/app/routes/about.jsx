import picture from '../picture.svg';

/** At a click the browser asks for this alone: `/about.data`. */
export const loader = () => ({ text: 'about this shop' });

export default function About({ loaderData }) {
  return (
    <main>
      <p>{loaderData.text}</p>
      <img src={picture} alt="a drawing" width="320" height="200" />
    </main>
  );
}
