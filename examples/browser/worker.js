// worker.js  Runs the model beside the page. The first message is the WebAssembly. After it each request {id, op, …} has one answer {id, …} or {id, error}; a training also
// sends {progress: …} and reads further requests between its steps.
"use strict";

let ready = null, stopped = false;

function call(module, name, types, values) {
    const text = module.ccall(name, "string", types, values);
    if (text.startsWith("!")) throw new Error(text.slice(1));
    return text === "" ? [] : text.split("\t");
}

const nextTask = () => new Promise((resolve) => {
    const channel = new MessageChannel();
    channel.port1.onmessage = () => {
        channel.port1.close();
        resolve();
    };
    channel.port2.postMessage(null);
});

const operations = {
    async train(module, {text, units, batch, epochs, seed, portable}) {
        stopped = false;
        const [steps, unigram, first, words, weights] = call(module, "begin_training",
            ["string", "number", "number", "number", "number", "number"], [text, units, batch, epochs, seed, portable ? 1 : 0]).map(Number);
        postMessage({progress: {begun: true, steps, unigram, words, weights, done: 0, validation: first}});
        const start = performance.now();
        let done = 0;
        for (let more = true; more && !stopped;) {
            const state = call(module, "train", ["number"], [80]).map(Number);
            done = state[0];
            more = state[4] === 1;
            postMessage({progress: {steps, done, training: state[1], validation: state[3] ? state[2] : null}});
            await nextTask();
        }
        call(module, "end_training", [], []);
        return {done, steps, seconds: (performance.now() - start) / 1000};
    },
    stop() {
        stopped = true;
        return {};
    },
    predict(module, {text, k}) {
        const fields = call(module, "predict", ["string", "number"], [text, k]);
        const words = [];
        for (let i = 0; i + 1 < fields.length; i += 2) words.push({word: fields[i], probability: Number(fields[i + 1])});
        return {words};
    },
    learn(module, {text}) {
        const [perplexity, units, ...words] = call(module, "learn", ["string"], [text]);
        return {perplexity: Number(perplexity), units: Number(units), words};
    },
    evaluate(module, {text}) {
        return {perplexity: Number(call(module, "evaluate", ["string"], [text])[0])};
    },
    sample(module, {units, temperature, seed}) {
        return {text: call(module, "sample", ["number", "number", "number"], [units, temperature, seed]).join("\t")};
    },
    save(module) {
        call(module, "save", [], []);
        return {bytes: module.FS.readFile("/model.safetensors")};
    },
    load(module, {bytes, portable}) {
        module.FS.writeFile("/model.safetensors", new Uint8Array(bytes));
        const [words, weights] = call(module, "load", ["number"], [portable ? 1 : 0]).map(Number);
        return {words, weights};
    },
};

onmessage = async ({data}) => {
    if (data.wasmBinary) {
        ready = createKeyboard({wasmBinary: data.wasmBinary});
        ready.catch((error) => setTimeout(() => { throw error; }));
        return;
    }
    try {
        const module = await ready;
        postMessage({id: data.id, ...await operations[data.op](module, data)});
    } catch (error) {
        postMessage({id: data.id, error: error.message || String(error)});
    }
};
