'use client';

import { useEffect, useState } from 'react';
import { load } from './load.js';

export function Parts() {
  const [texts, setTexts] = useState([]);
  useEffect(() => {
    document.body.dataset.ready = 'yes';
  }, []);
  const add = async (first, end) => {
    const more = await load(first, end);
    setTexts((before) => [...before, ...more]);
  };
  return (
    <>
      <button type="button" id="first" onClick={() => add(0, 3)}>
        first
      </button>
      <button type="button" id="rest" onClick={() => add(3, 6)}>
        rest
      </button>
      <ul>
        {texts.map((text) => (
          <li key={text}>{text}</li>
        ))}
      </ul>
    </>
  );
}
