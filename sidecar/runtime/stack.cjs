/** The frames of a paused event loop as people read them, source-mapped where a map lies beside the file. */
'use strict';

const { closeSync, fstatSync, openSync, readFileSync, readSync } = require('node:fs');
const { dirname, resolve, sep } = require('node:path');
const { fileURLToPath } = require('node:url');

const FRAMES_MAX = 20;
/** A larger map is left alone: it takes ten times its size in memory, of a process whose memory is the user's. */
const MAP_BYTES_MAX = 8 * 1024 * 1024;
/** The reference to a map is the last line of a file. */
const TAIL_BYTES = 4_096;
const MAPS_MAX = 8;
const ANONYMOUS = '(anonymous)';
/** Of a frame: where the name of its function stands in the file. A symbol, so that it stays out of JSON. */
const NAME_AT = Symbol('place of the name');

function fileOf(url) {
  try {
    return url.startsWith('file:') ? fileURLToPath(url) : url;
  } catch {
    return url;
  }
}

/**
 * Call frames of Debugger.paused as `{ function, file, line, column }`, counted from 1; those of the runtime left out.
 */
function plainFrames(callFrames, urls) {
  return callFrames
    .map(({ functionName, functionLocation: begin, location: { scriptId, lineNumber, columnNumber = 0 } }) => ({
      function: functionName || ANONYMOUS,
      file: fileOf(urls.get(scriptId) ?? ''),
      line: lineNumber + 1,
      column: columnNumber + 1,
      // A function begins behind its name.
      [NAME_AT]: { line: (begin?.lineNumber ?? 0) + 1, column: (begin?.columnNumber ?? 0) + 1 - functionName.length },
    }))
    .filter(({ file }) => !file.startsWith(__dirname + sep))
    .slice(0, FRAMES_MAX);
}

/** The end of a file, where its map is named; or undefined. */
function mapUrl(file) {
  let fd;
  try {
    fd = openSync(file, 'r');
    const { size } = fstatSync(fd);
    const buffer = Buffer.alloc(Math.min(size, TAIL_BYTES));
    readSync(fd, buffer, 0, buffer.length, size - buffer.length);
    return /\/\/[#@] sourceMappingURL=([^\s'"]+)\s*$/.exec(buffer.toString('latin1'))?.[1];
  } catch {
    return undefined;
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

/** The map of a file as node:module reads it, or undefined. Maps within the file (data: URLs) are left alone. */
function loadMap(file) {
  const url = file.startsWith('/') ? mapUrl(file) : undefined;
  if (!url || /^[a-z]+:/i.test(url)) return undefined;
  try {
    const path = resolve(dirname(file), decodeURIComponent(url));
    const fd = openSync(path, 'r');
    const { size } = fstatSync(fd);
    closeSync(fd);
    if (size > MAP_BYTES_MAX) return undefined;
    const { SourceMap } = require('node:module');
    const content = JSON.parse(readFileSync(path, 'utf8'));
    return { map: new SourceMap(content), content, folder: dirname(path) };
  } catch {
    return undefined; // no map, or none that can be read: the frame stays as it is
  }
}

function sourcePath(source, folder) {
  return /^[a-z]+:\/\//i.test(source) ? fileOf(source) : resolve(folder, source);
}

/** The same frames at their places in the sources. */
function mapped(frames) {
  const maps = new Map();
  const entryAt = (file, line, column) => {
    if (!maps.has(file) && maps.size < MAPS_MAX) maps.set(file, loadMap(file));
    const entry = maps.get(file)?.map.findEntry(line - 1, column - 1);
    if (entry?.originalSource === undefined) return undefined;
    const { content, folder } = maps.get(file);
    return { ...entry, content, folder };
  };
  const found = frames.map(({ file, line, column }) => entryAt(file, line, column));
  return frames.map((frame, index) => {
    const entry = found[index];
    if (entry === undefined) return frame;
    // A map knows the name of a minified function where it is declared, and where it is called: one frame further out.
    const at = frame[NAME_AT];
    const begin = entryAt(frame.file, at.line, at.column);
    const name = nameAt(at, begin) ?? nameAt(frames[index + 1], found[index + 1]) ?? nameInSource(frame, begin);
    return {
      function: name ?? frame.function,
      file: sourcePath(String(entry.originalSource), entry.folder),
      line: entry.originalLine + 1,
      column: entry.originalColumn + 1,
    };
  });
}

/** The name that the map has for exactly this place. */
function nameAt(place, entry) {
  const isExact = entry?.generatedLine === place?.line - 1 && entry?.generatedColumn === place?.column - 1;
  return isExact && entry.name ? entry.name : undefined;
}

/**
 * The name of a function that a minifier has taken away (`function renderPrice() {` became `function(){`), from the
 * source itself.
 */
function nameInSource(frame, entry) {
  if (frame.function !== ANONYMOUS || entry === undefined) return undefined;
  const { sources = [], sourcesContent = [] } = entry.content;
  const text = sourcesContent[sources.indexOf(entry.originalSource)];
  const line = text?.split('\n')[entry.originalLine] ?? '';
  const [, declared] = /^(?:async\s+)?function\b[\s*]*([\w$]+)/.exec(line.slice(entry.originalColumn)) ?? [];
  const [, assigned] = /([\w$]+)\s*=\s*$/.exec(line.slice(0, entry.originalColumn)) ?? [];
  return declared ?? assigned;
}

/** Whether a frame is not of Node.js itself. */
function isProgram({ file }) {
  return file !== '' && !file.startsWith('node:');
}

/** One line for people: the innermost frame of the program. */
function summary(frames) {
  const own = frames.find(isProgram) ?? frames[0];
  return own && `${own.function} ${own.file}:${own.line}`;
}

module.exports = { isProgram, mapped, plainFrames, summary };
