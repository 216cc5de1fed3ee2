/** Measures of the events in a chunk. */
export interface Measured {
  /** Bytes of the longest event that ends in the chunk or continues after it. */
  readonly maxEventBytes: number;
  /** The JSON texts of the large events that end in the chunk, with one character per byte. */
  readonly texts: readonly string[];
}

export type EventMeasure = (chunk: Uint8Array) => Measured;

const lineFeed = 10;
const carriageReturn = 13;
// Smaller events parse quickly, whatever they contain.
const largeEventBytes = 65_536;

/** Measures server-sent events, which end with an empty line. */
export function measureEvents(): EventMeasure {
  return measureText(({ isEmpty }) => isEmpty, dataOf);
}

/** Measures lines of JSON. */
export function measureLines(): EventMeasure {
  return measureText(
    () => true,
    (line) => line,
  );
}

/** Returns the data of a server-sent event. Its other lines are never parsed as JSON. */
function dataOf(event: string): string {
  return event
    .split(/\r\n?|\n/)
    .filter((line) => dataName.test(line))
    .map((line) => line.replace(dataName, ""))
    .join("\n");
}

// A byte order mark may come before the first line.
const dataName = /^(?:\xef\xbb\xbf)?data:?/;

function measureText(
  endsEvent: (line: { readonly isEmpty: boolean }) => boolean,
  textOf: (event: string) => string,
): EventMeasure {
  const event = createPieces();
  let line = 0;
  let hasEnded = false;
  let afterReturn = false;
  return (chunk) => {
    const texts: string[] = [];
    let maxEventBytes = 0;
    let from = 0;
    const measureUpTo = (at: number, goesOn: boolean): void => {
      event.add(chunk.subarray(from, at));
      from = at;
      if (event.bytes() > maxEventBytes) maxEventBytes = event.bytes();
      if (hasEnded && event.bytes() > largeEventBytes) texts.push(textOf(event.text()));
      if (goesOn) return;
      event.clear();
      hasEnded = false;
    };
    for (let at = 0; at < chunk.length; at++) {
      const byte = chunk[at];
      const isRest = byte === lineFeed && afterReturn;
      if (hasEnded && !isRest) measureUpTo(at, false);
      afterReturn = byte === carriageReturn;
      if (byte !== lineFeed && !afterReturn) line += 1;
      else if (!isRest) {
        hasEnded = endsEvent({ isEmpty: line === 0 });
        line = 0;
      }
    }
    // The second byte of a line end may be in the next chunk.
    measureUpTo(chunk.length, !hasEnded || afterReturn);
    return { maxEventBytes, texts };
  };
}

/** Measures binary frames: the first four bytes are the frame's length, the next four the length of its headers. */
export function measureFrames(): EventMeasure {
  const frame = createPieces();
  const prefix = Buffer.alloc(8);
  let at = 0;
  const length = (): number => Math.max(prefix.length, prefix.readUInt32BE(0));
  return (chunk) => {
    const texts: string[] = [];
    let maxEventBytes = at < prefix.length ? 0 : length();
    for (let index = 0; index < chunk.length; ) {
      const wanted = at < prefix.length ? prefix.length : length();
      const piece = chunk.subarray(index, index + wanted - at);
      if (at < prefix.length) prefix.set(piece, at);
      else frame.add(piece);
      at += piece.length;
      index += piece.length;
      if (at < prefix.length) continue;
      maxEventBytes = Math.max(maxEventBytes, length());
      if (at < length()) continue;
      if (at > largeEventBytes)
        texts.push(frame.text().slice(preludeRest + prefix.readUInt32BE(4)));
      frame.clear();
      at = 0;
    }
    return { maxEventBytes, texts };
  };
}

/** The checksum between a frame's lengths and its headers. */
const preludeRest = 4;

/** Collects the pieces of one event from several chunks. */
function createPieces() {
  let pieces: Uint8Array[] = [];
  let bytes = 0;
  return {
    add(piece: Uint8Array): void {
      pieces.push(piece);
      bytes += piece.length;
    },
    bytes: (): number => bytes,
    text: (): string => Buffer.concat(pieces).toString("latin1"),
    clear(): void {
      pieces = [];
      bytes = 0;
    },
  };
}
