// The program that node runs for onnxruntime_web.py: loads a model, then answers lines of JSON with lines of JSON.
// Arrays go through files. Arguments: the package's folder, the path of the model.
import { createRequire } from 'node:module';
import { readFileSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { join } from 'node:path';

const [folder, path] = process.argv.slice(2);
const answer = (value) => process.stdout.write(JSON.stringify(value) + '\n');
console.log = console.info = console.warn = console.error;
const arrays = {
  float32: Float32Array, float64: Float64Array, int8: Int8Array, int16: Int16Array, int32: Int32Array,
  int64: BigInt64Array, uint8: Uint8Array, uint16: Uint16Array, uint32: Uint32Array, uint64: BigUint64Array,
  bool: Uint8Array, float16: globalThis.Float16Array ?? Uint16Array,
};
const bytes = (file) => { const read = readFileSync(file); return read.buffer.slice(read.byteOffset, read.byteOffset + read.byteLength); };

let ort, session;
try {
  ort = createRequire(join(folder, 'package.json'))('onnxruntime-web');
  ort.env.wasm.numThreads = 1;
  ort.env.logLevel = 'fatal';
  session = await ort.InferenceSession.create(new Uint8Array(bytes(path)), { executionProviders: ['wasm'] });
  answer({ loaded: true });
} catch (error) {
  answer({ error: String(error?.message ?? error) });
}

for await (const line of createInterface({ input: process.stdin })) {
  try {
    const request = JSON.parse(line);
    const feeds = {};
    for (const { name, type, dims, path: file } of request.inputs) {
      if (session.inputNames.includes(name)) feeds[name] = new ort.Tensor(type, new arrays[type](bytes(file)), dims);
    }
    const found = await session.run(feeds, request.outputs);
    answer({ outputs: request.outputs.map((name, index) => {
      const { type, dims, data } = found[name], file = join(request.folder, `out${index}`);
      writeFileSync(file, new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
      return { type, dims, path: file };
    }) });
  } catch (error) {
    answer({ error: String(error?.message ?? error) });
  }
}
