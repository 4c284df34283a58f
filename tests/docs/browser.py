"""A browser opens the pages of the site as a reader does, as files: python3 browser.py SITE CHROMIUM

Every page of the guide, and of the reference one in thirty, one after the other in a frame. No script may fail, the console
says so; files that are missing site.py finds. Then the search must find. That an error is seen is tried on a page that has one.
"""

import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading

site, chromium = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--window-size=1280,1000", "--disable-dev-shm-usage"]
HARNESS = """<!doctype html><title>pages</title><iframe width=1200 height=900></iframe><script>
const pages = %s, frame = document.querySelector("iframe");
let next = 0;
frame.onload = () => setTimeout(() => {
    console.log("opened " + pages[next - 1]);
    if (next < pages.length) frame.src = pages[next++];
    else console.log("all opened");
}, 100);
frame.src = pages[next++];
</script>"""


def opened(pages, folder):
    """What the console says while the pages are opened: how many were, and other lines."""
    harness = folder / "harness.html"
    harness.write_text(HARNESS % [p.as_uri() for p in pages])
    profile = f"--user-data-dir={folder / 'profile'}"
    process = subprocess.Popen([chromium, *FLAGS, profile, "--enable-logging=stderr", "--remote-debugging-port=0", harness.as_uri()],
                               stderr=subprocess.PIPE, text=True, errors="replace")
    watch = threading.Timer(540, process.kill)
    watch.start()
    count, said, finished = 0, [], False
    for line in process.stderr:
        if "CONSOLE" not in line:
            continue
        if '"all opened"' in line:
            finished = True
            break
        if '"opened file' in line:
            count += 1
        else:
            said.append(re.sub(r"^\[.*?CONSOLE[^\]]*\] ?", "", line.strip()))
    watch.cancel()
    process.send_signal(signal.SIGTERM)
    process.wait()
    return count if finished else -1, said


with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
    folder = pathlib.Path(name)
    broken = folder / "broken.html"
    broken.write_text('<script>planted()</script>')
    count, said = opened([broken], folder)
    assert count == 1 and any("planted is not defined" in s for s in said), (count, said)

    guide = [p for p in sorted(site.rglob("*.html")) if "reference" not in p.relative_to(site).parts and p.name != "404.html"]
    reference = [p for p in sorted((site / "reference").glob("*.html")) if not p.name.endswith("-members.html")]
    pages = guide + [site / "reference" / "index.html"] + reference[::30]
    count, said = opened(pages, folder)
    assert count == len(pages), f"opened {count} of {len(pages)}; the console says: {said}"
    assert not said, "\n".join(["the console says:", *said])

    found = subprocess.run([chromium, *FLAGS, f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=20000", "--dump-dom",
                            (site / "index.html").as_uri() + "?q=variational+dropout"], capture_output=True, text=True).stdout
    assert re.search(r'<a href="[^"]*docs/node/dropout\.html[^"]*" class="md-search-result__link"', found), "the search finds no Dropout"
    print(f"{count} pages opened, the console is silent, the search finds")
