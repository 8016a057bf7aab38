import { block, given, paragraphs, section, text, when, words } from '../../../src/render/directives.ts';

test('what holds is written down, in order and indented; the rest leaves no trace', () => {
  const settings: { size: number } | undefined = { size: 3 };
  const absent: { size: number } | undefined = undefined;
  const file = text(
    paragraphs(
      ['# a comment', section('global', 'one', when(true, 'two', ['three']), when(false, 'never'))],
      when(false, 'no paragraph'),
      section(
        'backend b',
        given(settings, ({ size }) => `size ${size}`),
        given(absent, () => 'never'),
      ),
    ),
  );
  expect(file).toBe('# a comment\nglobal\n  one\n  two\n  three\n\nbackend b\n  size 3\n');
});

test('blocks stand in blocks; an empty line has no blanks', () => {
  expect(text(block('http', block('map', 'default 1;'), '', 'end;'))).toBe(
    'http {\n  map {\n    default 1;\n  }\n\n  end;\n}\n',
  );
});

test('zero is a setting', () => {
  expect(text(given(0, (value) => `retries ${value}`))).toBe('retries 0\n');
});

test('a directive of several parts', () => {
  expect(words('server a', false, 'check', undefined, 'backup')).toBe('server a check backup');
});

test.each(['a\nb', 'a\rb', 'a\n'])('%j is not one directive', (line) => {
  expect(() => text(['first', [line]])).toThrow(RangeError);
  expect(() => text(section('global', line))).toThrow(RangeError);
});
