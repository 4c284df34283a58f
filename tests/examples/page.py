"""The page of examples/browser in Chromium, as a file: python3 page.py PAGE KEYBOARD CHROMIUM

PAGE is keyboard.html that build.sh made, KEYBOARD the program of the same engine on this machine. A script behind those of the
page trains, types and writes as a person does. The perplexity falls below that of the word frequencies; the saved model has the
bytes of the desktop's after training and after learning two sentences, and the same perplexity there.
"""

import base64
import pathlib
import re
import subprocess
import sys
import tempfile

page, keyboard, chromium = pathlib.Path(sys.argv[1]).resolve(), str(pathlib.Path(sys.argv[2]).resolve()), sys.argv[3]
DRIVER = r"""<script>
(async () => {
    const until = async (what, f) => {
        for (let i = 0; i < 12000; ++i) {
            if (f()) return;
            await new Promise((go) => setTimeout(go, 50));
        }
        throw new Error(`waited for: ${what}`);
    };
    const say = (name, value) => console.log(`said ${name} ${value}`);
    const bytes = async (name) => {
        let text = "";
        for (const b of (await ask("save")).bytes) text += String.fromCharCode(b);
        text = btoa(text);
        for (let i = 0; i < text.length; i += 50000) say(name, text.slice(i, i + 50000));
    };
    const type = async (text) => {
        $("next").replaceChildren();
        $("typed").value = text;
        $("typed").dispatchEvent(new InputEvent("input"));
        await until("words", () => $("next").children.length > 0);
    };
    $("train").click();
    await until("an error", () => !$("problem").hidden);
    say("error", $("problem").textContent);
    $("text").value = "Too short.";
    $("train").click();
    await until("an error", () => $("problem").textContent.includes("360"));
    $("sample-text").click();
    $("text").value = $("text").value.slice(0, LENGTH);
    $("text").oninput();
    $("units").value = "32";
    $("epochs").value = "1";
    $("portable").click();
    $("train").click();
    await until("training", () => training);
    await until("the end of the training", () => !training);
    say("error", $("problem").textContent);
    say("unigram", curve.unigram);
    say("validation", curve.held.at(-1)[1]);
    say("curve", $("curve").querySelectorAll("path").length);
    await bytes("trained");
    say("evaluated", (await ask("evaluate", {text: $("text").value.slice(0, 20000)})).perplexity);
    await type("What is th");
    say("completed", [...$("next").children].map((b) => b.firstChild.textContent).join(" "));
    for (const k of [1, 2]) {
        await type("We march to Vlissingen.");
        $("typed").dispatchEvent(new KeyboardEvent("keydown", {key: "Enter"}));
        await until("a learned sentence", () => $("said").children.length === k);
    }
    say("learned", $("said").textContent);
    await bytes("taught");
    $("write").click();
    await until("a text", () => !$("written").hidden);
    say("written", $("written").textContent.length);
    await ask("load", {bytes: new TextEncoder().encode("no model").buffer, portable: true}).catch((e) => say("refused", e.message));
    console.log("said all");
})().catch((error) => console.log(`failed: ${error.message}; ${$("problem").textContent}`));
</script>"""
LENGTH = 25000
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--enable-logging=stderr", "--remote-debugging-port=0"]

with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
    folder = pathlib.Path(name)
    source = page.read_text()
    driven = folder / "driven.html"
    driven.write_text(source.replace("</body>", DRIVER.replace("LENGTH", str(LENGTH)) + "\n</body>"))
    process = subprocess.Popen([chromium, *FLAGS, f"--user-data-dir={folder / 'profile'}", driven.as_uri()],
                               stderr=subprocess.PIPE, text=True, errors="replace")
    said, rest = {}, []
    for line in process.stderr:
        found = re.search(r'CONSOLE[^\]]*\] ?"(.*)", source:', line)
        if not found:
            continue
        if found[1] == "said all" or found[1].startswith("failed"):
            rest += [found[1]] if found[1].startswith("failed") else []
            break
        word = found[1].split(" ", 2)
        if word[0] == "said":
            said.setdefault(word[1], []).append(word[2] if len(word) > 2 else "")
        else:
            rest.append(found[1])
    process.terminate()
    process.wait()
    assert not rest, rest
    assert "There is no text" in said["error"][0] and said["error"][1] == "×", said["error"]
    assert float(said["validation"][0]) < 0.8 * float(said["unigram"][0]), said
    assert said["curve"] == ["2"], said["curve"]
    assert all(w.startswith("th") for w in said["completed"][0].split()), said["completed"]
    assert "new word: Vlissingen" in said["learned"][0], said["learned"]
    assert int(said["written"][0]) > 200 and "model.safetensors" in said["refused"][0], said

    text = re.search(r'id="bundled-text">(.*?)</script>', source, re.S)[1].strip()[:LENGTH]
    (folder / "text.txt").write_text(text)
    (folder / "start.txt").write_text(text[:20000])
    (folder / "sentence.txt").write_text("We march to Vlissingen.\n")

    def run(*command):
        return subprocess.run([keyboard, *command], cwd=folder, check=True, capture_output=True, text=True).stdout

    run("train", "text.txt", "0.safetensors", "units", "32", "epochs", "1", "portable", "1")
    for k in (0, 1):
        run("learn", f"{k}.safetensors", "sentence.txt", f"{k + 1}.safetensors", "portable", "1")
    for k, step in ((0, "trained"), (2, "taught")):
        ours = base64.b64decode("".join(said[step]))
        assert ours == (folder / f"{k}.safetensors").read_bytes(), f"{step}: the page saved other bytes than the desktop"
    (folder / "page.safetensors").write_bytes(base64.b64decode("".join(said["trained"])))
    there = float(re.search(r"perplexity ([\d.]+)", run("evaluate", "page.safetensors", "start.txt"))[1])
    assert abs(there / float(said["evaluated"][0]) - 1) < 1e-4, (there, said["evaluated"])
    print(f"perplexity {float(said['validation'][0]):.1f} of {float(said['unigram'][0]):.1f}; the bytes are those of the desktop")
