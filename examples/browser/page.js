// page.js  What is on the page: it asks the worker, and shows the answers.
"use strict";

const $ = (id) => document.getElementById(id);

// --- the worker ------------------------------------------------------------------------------------

const worker = new Worker(URL.createObjectURL(new Blob([$("worker-source").textContent], {type: "text/javascript"})));
const waiting = new Map();
let requests = 0;

// The WebAssembly is in the page, compressed and in base64.
async function wasm() {
    const packed = Uint8Array.from(atob($("wasm").textContent), (c) => c.charCodeAt(0));
    const bytes = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(bytes).arrayBuffer();
}
const started = wasm().then((wasmBinary) => worker.postMessage({wasmBinary}));

async function ask(op, request = {}) {
    await started;
    return new Promise((resolve, reject) => {
        const id = ++requests;
        waiting.set(id, {resolve, reject});
        worker.postMessage({id, op, ...request});
    });
}
worker.onmessage = ({data}) => {
    if (data.progress) return showProgress(data.progress);
    const {resolve, reject} = waiting.get(data.id);
    waiting.delete(data.id);
    if (data.error) reject(new Error(data.error));
    else resolve(data);
};
worker.onerror = (event) => problem(`The model cannot run in this browser, which may lack WebAssembly with SIMD: ${event.message || "no reason given"}`);
started.catch((error) => worker.onerror(error));

function problem(text) {
    $("problem").hidden = !text;
    $("problem").firstElementChild.textContent = text || "";
}
$("problem").lastElementChild.onclick = () => problem("");

// An action whose errors are shown.
const attempt = (action) => async (...given) => {
    problem("");
    try {
        await action(...given);
    } catch (error) {
        problem(error.message);
    }
};

// --- numbers ---------------------------------------------------------------------------------------

const whole = (n) => n.toLocaleString("en");
const short = (n) => n >= 1e6 ? `${(n / 1e6).toPrecision(3)} million` : n >= 100 ? whole(Math.round(n)) : n.toPrecision(2);

// --- training --------------------------------------------------------------------------------------

let curve = null, training = false, hasModel = false;

$("text").oninput = () => {
    const words = ($("text").value.match(/\S+/g) || []).length;
    $("text-size").textContent = words ? `${whole(words)} words; the last tenth is kept to test the model on.` : "\u00a0";
};
$("sample-text").onclick = () => {
    $("text").value = $("bundled-text").textContent.trim();
    $("text").scrollTop = 0;
    $("text").oninput();
};
$("open-text").onclick = () => $("text-file").click();
$("text-file").onchange = attempt(async () => {
    const file = $("text-file").files[0];
    $("text-file").value = "";
    if (!file) return;
    const bytes = new Uint8Array(await file.arrayBuffer());
    try {
        $("text").value = new TextDecoder("utf-8", {fatal: true}).decode(bytes);
    } catch {
        throw new Error(`${file.name} is not a text in UTF-8. Save it as plain text, then open it again.`);
    }
    $("text").oninput();
});

function controls() {
    $("train").textContent = training ? "Stop" : "Train";
    for (const id of ["units", "epochs", "portable", "open-model"]) $(id).disabled = training;
    for (const id of ["typed", "learn", "write", "save"]) $(id).disabled = !hasModel || training;
    $("typed").placeholder = hasModel ? "Type a sentence." : "Train or open a model, then type here.";
    if (training || !hasModel) $("next").replaceChildren();
}

$("train").onclick = attempt(async () => {
    if (training) {
        await ask("stop");
        return;
    }
    const text = $("text").value, epochs = Number($("epochs").value);
    if (!text.trim()) throw new Error("There is no text. Paste one, open a file, or take Shakespeare.");
    if (!Number.isInteger(epochs) || epochs < 1) throw new Error("Passes: expected a whole number from 1 on.");
    training = true;
    controls();
    $("status").textContent = "Counting words …";
    try {
        const end = await ask("train", {text, units: Number($("units").value), batch: 8, epochs, seed: 1, portable: $("portable").checked});
        hasModel = true;
        $("said").replaceChildren();
        const last = curve.held.at(-1)[1];
        $("status").textContent = `${end.done < end.steps ? "Stopped" : "Trained"} after ${short(end.seconds)} s: perplexity ${short(last)}, ` +
            `word frequencies alone have ${short(curve.unigram)}.`;
    } catch (error) {
        $("status").textContent = hasModel ? "" : "No model yet.";
        throw error;
    } finally {
        training = false;
        controls();
    }
    suggest();
});

function showProgress(p) {
    if (p.begun) curve = {steps: p.steps, unigram: p.unigram, words: p.words, weights: p.weights, held: [], seen: []};
    if (p.validation) curve.held.push([p.done, p.validation]);
    if (p.training) curve.seen.push([p.done, p.training]);
    const share = Math.round(100 * p.done / p.steps);
    $("progress").firstElementChild.style.width = `${share}%`;
    $("progress").setAttribute("aria-valuenow", share);
    $("status").textContent = `Step ${whole(p.done)} of ${whole(p.steps)}; ${whole(curve.words)} words, ${short(curve.weights)} weights.`;
    if (!p.begun && !p.validation && p.done < p.steps && curve.seen.length % 5) return;
    draw();
}

function draw() {
    const W = 460, H = 260, left = 52, right = W - 14, top = 18, bottom = H - 28;
    // The training curve is a running geometric mean.
    const width = curve.steps / 25, smooth = [];
    let mean = null, before = 0;
    for (const [done, value] of curve.seen) {
        const share = mean === null ? 1 : 1 - Math.exp((before - done) / width);
        mean = (mean ?? 0) + share * (Math.log(value) - (mean ?? 0));
        before = done;
        smooth.push([done, Math.exp(mean)]);
    }
    const values = [...curve.held.map((p) => p[1]), curve.unigram], all = [...values, ...smooth.map((p) => p[1])];
    const low = Math.log(Math.min(...all) / 1.25), high = Math.log(Math.max(...values) * 1.25);
    const x = (step) => left + (right - left) * step / curve.steps;
    const y = (value) => bottom - (bottom - top) * Math.min(1, Math.max(0, (Math.log(value) - low) / (high - low)));
    const path = (points) => points.map(([a, b], i) => `${i ? "L" : "M"}${x(a).toFixed(1)} ${y(b).toFixed(1)}`).join("");
    const ticks = [];
    for (let ten = 1; ten < 1e9; ten *= 10)
        for (const digit of [1, 2, 5]) if (Math.log(digit * ten) >= low && Math.log(digit * ten) <= high) ticks.push(digit * ten);
    while (ticks.length > 6) ticks.splice(0, ticks.length, ...ticks.filter((_, i) => i % 2 === 0));
    const [step, last] = curve.held.at(-1), label = x(step) > right - 60 ? "end" : x(step) < left + 30 ? "start" : "middle";
    $("curve").innerHTML = `<svg viewBox="0 0 ${W} ${H}" role="img" aria-label="Perplexity ${short(last)} after ${step} of ${curve.steps} steps; unigram ${short(curve.unigram)}">` +
        ticks.map((t) => `<line class="grid" x1="${left}" x2="${right}" y1="${y(t)}" y2="${y(t)}"/><text x="${left - 8}" y="${y(t) + 4}" text-anchor="end">${whole(t)}</text>`).join("") +
        `<text x="${left}" y="${H - 6}">start</text><text x="${right}" y="${H - 6}" text-anchor="end">${whole(curve.steps)} steps</text>` +
        `<line class="unigram" x1="${left}" x2="${right}" y1="${y(curve.unigram)}" y2="${y(curve.unigram)}"/>` +
        `<text class="of-unigram" x="${right}" y="${y(curve.unigram) - 6}" text-anchor="end">word frequencies alone: ${short(curve.unigram)}</text>` +
        `<path class="seen" d="${path(smooth)}"/><path class="held" d="${path(curve.held)}"/>` +
        `<circle class="dot" cx="${x(step)}" cy="${y(last)}" r="5"/><text class="of-held" x="${x(step)}" y="${y(last) > bottom - 34 ? y(last) - 12 : y(last) + 22}" text-anchor="${label}">${short(last)}</text></svg>`;
}

// --- files -----------------------------------------------------------------------------------------

$("save").onclick = attempt(async () => {
    const {bytes} = await ask("save");
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([bytes]));
    link.download = "keyboard.safetensors";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
});
$("open-model").onclick = () => $("model-file").click();
$("model-file").onchange = attempt(async () => {
    const file = $("model-file").files[0];
    $("model-file").value = "";
    if (!file) return;
    let loaded;
    try {
        loaded = await ask("load", {bytes: await file.arrayBuffer(), portable: $("portable").checked});
    } catch (error) {
        throw new Error(error.message.replace("/model.safetensors", file.name));
    }
    hasModel = true;
    $("said").replaceChildren();
    $("status").textContent = `${file.name}: ${whole(loaded.words)} words, ${short(loaded.weights)} weights.`;
    controls();
    suggest();
});

// --- typing ----------------------------------------------------------------------------------------

const strokes = {made: 0, saved: 0};
let asked = 0;

const suggest = attempt(async () => {
    if (!hasModel || training) return;
    const mine = ++asked, {words} = await ask("predict", {text: $("typed").value, k: 5});
    if (mine !== asked || training) return;
    $("next").replaceChildren(...words.map(({word, probability}, i) => {
        const button = document.createElement("button");
        button.type = "button";
        button.title = `Alt+${i + 1}`;
        const name = document.createElement("b"), share = document.createElement("span"), bar = document.createElement("i");
        name.textContent = word;
        share.textContent = probability >= 0.0995 ? `${Math.round(100 * probability)} %` : `${(100 * probability).toPrecision(2)} %`;
        bar.style.width = `${100 * probability}%`;
        button.append(name, share, bar);
        button.onclick = () => choose(word);
        return button;
    }));
});

function choose(word) {
    const typed = $("typed").value, part = typed.match(/[\p{L}\p{N}_'’-]*$/u)[0];
    const completes = part !== "" && word.startsWith(part);
    const mark = !/[\p{L}\p{N}]/u.test(word);
    const before = completes ? typed.slice(0, typed.length - part.length) : mark ? typed.trimEnd() : typed;
    strokes.saved += Math.max(0, word.length + 1 - (completes ? part.length : 0) - 1);
    strokes.made += 1;
    $("typed").value = `${before}${word} `;
    $("typed").focus();
    showStrokes();
    suggest();
}
function showStrokes() {
    const all = strokes.made + strokes.saved;
    $("saved").textContent = strokes.saved ? `${whole(strokes.saved)} of ${whole(all)} keystrokes saved.` : "";
}

const learn = attempt(async () => {
    const text = $("typed").value.trim();
    if (!text) return;
    $("typed").value = "";
    const {perplexity, words} = await ask("learn", {text: `${text}\n`});
    const line = document.createElement("li"), said = document.createElement("div"), score = document.createElement("span");
    said.textContent = text;
    score.textContent = `perplexity ${short(perplexity)}`;
    for (const word of words) {
        const mark = document.createElement("mark");
        mark.textContent = `new word: ${word}`;
        score.append(mark);
    }
    line.append(said, score);
    $("said").append(line);
    $("said").scrollTop = $("said").scrollHeight;
    await suggest();
});

$("typed").oninput = (event) => {
    if (event.inputType === "insertText") strokes.made += 1, showStrokes();
    suggest();
};
$("typed").onkeydown = (event) => {
    if (event.key === "Enter" && !event.isComposing) {
        event.preventDefault();
        learn();
    } else if (event.altKey && /^Digit[1-5]$/.test(event.code)) {
        event.preventDefault();
        $("next").children[Number(event.code[5]) - 1]?.click();
    }
};
$("learn").onclick = () => {
    learn();
    $("typed").focus();
};

// --- writing ---------------------------------------------------------------------------------------

let seed = 0;
$("temperature").oninput = () => $("temperature").nextElementSibling.value = Number($("temperature").value).toFixed(1);
$("write").onclick = attempt(async () => {
    const {text} = await ask("sample", {units: 80, temperature: Number($("temperature").value), seed: ++seed});
    $("written").textContent = text.trim();
    $("written").hidden = false;
});

// --- light and dark --------------------------------------------------------------------------------

$("theme").onclick = () => {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
};

$("text").oninput();
controls();
